// EXEC: comms.engine_copy
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = np.arange(8, dtype=np.float32) + 10 * r' \
// RUN:   'y = np.concatenate([np.zeros(4, np.float32), xs[(r - 1) % n][:4]])'
// RUN: comms-run %s --ranks 3 --input x=%t/x-%r.npy --expect in=%t/y-%r.npy --quiet

// The copy engine brings the first half of x to the next rank.
comms.kernel @engine_copy(%x: memref<8xf32>, %in: !comms.window<8xf32>) {
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
  comms.engine_copy %x[%c0] to %in[%c4] count %c4 at %next of %team : memref<8xf32>, !comms.window<8xf32>
  comms.barrier %team block
  comms.return
}
