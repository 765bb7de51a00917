// Every rank waits for a signal that nobody sends.
comms.kernel @stuck(%s: !comms.signal<2>, %y: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %t = comms.wait_signal %s[%c1] ge %one : !comms.signal<2>
  comms.return
}
