// Counts for years.
comms.kernel @spin(%s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 1000000000000000 : index
  scf.for %i = %c0 to %end step %c1 {
    comms.reset_signal %s[%c0] : !comms.signal<1>
  }
  comms.return
}
