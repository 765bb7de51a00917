// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 'x = (np.arange(1000) % 7 + r).astype(np.float32)' \
// RUN:   'y = (sum(xs) * 3**7).astype(np.float32)' 'n = np.full(3, 2**32 + 1)'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot --protocols pull,push,ll,ll128,lamport --blocks 3 \
// RUN:   %s --ranks 3 --launches 8 --first-launch 4294967290 --input x=%t/x-%r.npy --expect x=%t/y-%r.npy \
// RUN:   --expect n=%t/n-%r.npy --bitwise | FileCheck %s
// CHECK: 10 runs agree

// Launches count on past 2^32, where the numbers of 32 bits that packets carry begin anew. In place, so that
// what a launch finds of the one before would be wrong.
comms.kernel @grow(%x: !comms.window<1000xf32>, %n: memref<3xi64>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1000xf32>) outs(%x : !comms.window<1000xf32>)
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %tile = comms.splat %launch : i64 -> tensor<1xi64>
  %block = comms.block_id
  comms.tile_store %tile, %n[%block] : tensor<1xi64>, memref<3xi64>
  comms.return
}
