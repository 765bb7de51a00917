// EXEC: comms.get comms.fence comms.barrier
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = np.arange(8, dtype=np.float16) + 8 * r' \
// RUN:   'y = np.concatenate([np.zeros(4, np.float16), xs[(r + 1) % n][:4]])'
// RUN: comms-run %s --ranks 4 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --quiet

// Reads the first half of the next rank's part into the second half of y.
comms.kernel @get(%x: !comms.window<8xf16>, %y: memref<8xf16>) {
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
  comms.fence release sys
  comms.barrier %team block
  comms.get %x[%c0] to %y[%c4] count %c4 at %next of %team : !comms.window<8xf16>, memref<8xf16>
  comms.fence acq_rel gpu proxy async
  comms.return
}
