// EXEC: comms.extent
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 'x = (np.arange(192) % 7 + r).astype(np.float32)' \
// RUN:   'y = sum(xs).astype(np.float32)' 'n = np.full(2, 192)'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot --protocols pull,push,ll,ll128,lamport --blocks 2 \
// RUN:   %s --ranks 3 --launches 4 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --expect n=%t/n-%r.npy --bitwise | FileCheck %s
// CHECK: 10 runs agree

// A run that gives no extent works on all that the arrays hold.
comms.kernel @sum(%x: memref<192xf32>, %y: memref<192xf32>, %n: memref<2xi64>) attributes {comms.run_time_extent = 64 : i64} {
  %block = comms.block_id
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<192xf32>) outs(%y : memref<192xf32>)
  %extent = comms.extent most 192
  %count = arith.index_cast %extent : index to i64
  %tile = comms.splat %count : i64 -> tensor<1xi64>
  comms.tile_store %tile, %n[%block] : tensor<1xi64>, memref<2xi64>
  comms.return
}
