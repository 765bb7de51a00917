// EXEC: comms.put_signal comms.wait_signal_from
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 5 \
// RUN:   'x = np.arange(8, dtype=np.int32) + 10 * r' \
// RUN:   'y = np.concatenate([xs[(r - 1) % n][4:], np.zeros(4, np.int32)])' \
// RUN:   's = np.array([2, 14], np.int64)'
// RUN: comms-run %s --ranks 5 --launches 2 --input x=%t/x-%r.npy --expect in=%t/y-%r.npy --expect s=%t/s-%r.npy --fuzz-schedules 4 --quiet

// The second half of x goes to the next rank, with two kinds of signal.
comms.kernel @put_signal(%x: memref<8xi32>, %in: !comms.window<8xi32>, %s: !comms.signal<2>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %me = comms.rank %team
  %n = comms.size %team
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %n : index
  %down = arith.addi %me, %n : index
  %down1 = arith.subi %down, %c1 : index
  %previous = arith.remui %down1, %n : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %seven = arith.constant 7 : i64
  %seventh = arith.muli %launch, %seven : i64
  comms.put_signal %x[%c4] to %in[%c0] count %c4 at %next of %team then inc %s[%c0]
    : memref<8xi32>, !comms.window<8xi32>, !comms.signal<2>
  comms.put_signal %x[%c4] to %in[%c0] count %c4 at %next of %team then add %s[%c1] value %seven
    : memref<8xi32>, !comms.window<8xi32>, !comms.signal<2>
  %a = comms.wait_signal_from %s[%c0] ge %launch from %previous of %team : !comms.signal<2>
  %b = comms.wait_signal_from %s[%c1] eq %seventh from %previous of %team : !comms.signal<2>
  comms.barrier %team block
  comms.return
}
