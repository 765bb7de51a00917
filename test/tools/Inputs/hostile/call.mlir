// Ends the process, if it could.
func.func private @abort()
comms.kernel @call() {
  func.call @abort() : () -> ()
  comms.return
}
