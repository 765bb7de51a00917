// EXEC: comms.put comms.wait_counter comms.read_counter comms.reset_counter comms.flush
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = np.arange(8, dtype=np.float32) - r' \
// RUN:   'y = np.array([2, 0], np.int64)' \
// RUN:   'in = xs[(r - 1) % n]'
// RUN: comms-run %s --ranks 3 --launches 2 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --expect in=%t/in-%r.npy --quiet

// Two counted puts; the counter tells that both have left, and goes back to zero.
comms.kernel @counters(%x: memref<8xf32>, %in: !comms.window<8xf32>, %c: !comms.counter<1>,
                       %y: memref<2xi64>) {
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
  %two = arith.constant 2 : i64
  comms.put %x[%c0] to %in[%c0] count %c4 at %next of %team counted %c[%c0] : !comms.counter<1>
    : memref<8xf32>, !comms.window<8xf32>
  comms.put %x[%c4] to %in[%c4] count %c4 at %next of %team counted %c[%c0] : !comms.counter<1>
    : memref<8xf32>, !comms.window<8xf32>
  comms.flush %team
  %done = comms.wait_counter %c[%c0] ge %two : !comms.counter<1>
  %seen = comms.read_counter %c[%c0] : !comms.counter<1>
  comms.reset_counter %c[%c0] : !comms.counter<1>
  %zero = comms.read_counter %c[%c0] : !comms.counter<1>
  %a = comms.splat %seen : i64 -> tensor<1xi64>
  %b = comms.splat %zero : i64 -> tensor<1xi64>
  comms.tile_store %a, %y[%c0] : tensor<1xi64>, memref<2xi64>
  comms.tile_store %b, %y[%c1] : tensor<1xi64>, memref<2xi64>
  comms.barrier %team block
  comms.return
}
