// EXEC: comms.signal comms.wait_signal comms.read_signal comms.reset_signal comms.barrier
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'y = np.array([5, 8, 3, 0], np.int64)' \
// RUN:   's = np.array([5, 8, 3, 0], np.int64)'
// RUN: comms-run %s --ranks 4 --launches 3 --expect y=%t/y-%r.npy --expect s=%t/s-%r.npy --quiet

// set, add and inc on the next rank's cells, read there, and put back to zero.
comms.kernel @signals(%s: !comms.signal<4>, %y: memref<4xi64>) {
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
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %five = arith.constant 5 : i64
  %eight = arith.constant 8 : i64
  comms.reset_signal %s[%c0] : !comms.signal<4>
  comms.reset_signal %s[%c1] : !comms.signal<4>
  comms.reset_signal %s[%c2] : !comms.signal<4>
  comms.barrier %team block
  comms.signal set %s[%c0] value %five at %next of %team : !comms.signal<4>
  comms.signal add %s[%c1] value %eight at %next of %team : !comms.signal<4>
  comms.signal inc %s[%c2] at %next of %team : !comms.signal<4>
  comms.signal inc %s[%c2] at %next of %team : !comms.signal<4>
  comms.signal inc %s[%c2] at %next of %team order relaxed : !comms.signal<4>
  comms.signal inc %s[%c3] at %me of %team : !comms.signal<4>
  %t0 = comms.wait_signal %s[%c0] eq %five : !comms.signal<4>
  %t1 = comms.wait_signal %s[%c1] ge %eight : !comms.signal<4>
  %t2 = comms.wait_signal %s[%c2] eq %three : !comms.signal<4>
  comms.reset_signal %s[%c3] : !comms.signal<4>
  %v0 = comms.read_signal %s[%c0] : !comms.signal<4>
  %v1 = comms.read_signal %s[%c1] : !comms.signal<4>
  %v2 = comms.read_signal %s[%c2] : !comms.signal<4>
  %v3 = comms.read_signal %s[%c3] : !comms.signal<4>
  %a = comms.splat %v0 : i64 -> tensor<1xi64>
  %b = comms.splat %v1 : i64 -> tensor<1xi64>
  %c = comms.splat %v2 : i64 -> tensor<1xi64>
  %d = comms.splat %v3 : i64 -> tensor<1xi64>
  comms.tile_store %a, %y[%c0] : tensor<1xi64>, memref<4xi64>
  comms.tile_store %b, %y[%c1] : tensor<1xi64>, memref<4xi64>
  comms.tile_store %c, %y[%c2] : tensor<1xi64>, memref<4xi64>
  comms.tile_store %d, %y[%c3] : tensor<1xi64>, memref<4xi64>
  comms.barrier %team block
  comms.return
}
