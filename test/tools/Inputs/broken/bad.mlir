// A role of no blocks.
comms.kernel @bad() {
  comms.role "nobody" blocks 2 to 2 {
  }
  comms.return
}
