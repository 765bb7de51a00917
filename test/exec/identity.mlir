// EXEC: comms.kernel comms.return comms.team comms.rank comms.size comms.block_id comms.num_blocks comms.epoch comms.local comms.splat comms.tile_store
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'y = np.array([[r, n, b, 2, 3] for b in range(2)], np.int32)'
// RUN: comms-run %s --ranks 3 --blocks 2 --launches 3 --expect y=%t/y-%r.npy --output y=%t/out-%r.npy | FileCheck %s

// Each block writes one row: its rank, the ranks, itself, the blocks, the launch.
// CHECK: identity: 3 ranks, 2 blocks each, 3 launches
// CHECK: all as expected
comms.kernel @identity(%y: !comms.window<2x5xi32>) {
  %team = comms.team world
  %own = comms.local %y : !comms.window<2x5xi32> -> memref<2x5xi32>
  %me = comms.rank %team
  %n = comms.size %team
  %b = comms.block_id
  %blocks = comms.num_blocks
  %epoch = comms.epoch
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %o0 = arith.muli %b, %c5 : index
  %o1 = arith.addi %o0, %c1 : index
  %o2 = arith.addi %o1, %c1 : index
  %o3 = arith.addi %o2, %c1 : index
  %o4 = arith.addi %o3, %c1 : index
  %i0 = arith.index_cast %me : index to i32
  %i1 = arith.index_cast %n : index to i32
  %i2 = arith.index_cast %b : index to i32
  %i3 = arith.index_cast %blocks : index to i32
  %i4 = arith.index_cast %epoch : index to i32
  %t0 = comms.splat %i0 : i32 -> tensor<1xi32>
  %t1 = comms.splat %i1 : i32 -> tensor<1xi32>
  %t2 = comms.splat %i2 : i32 -> tensor<1xi32>
  %t3 = comms.splat %i3 : i32 -> tensor<1xi32>
  %t4 = comms.splat %i4 : i32 -> tensor<1xi32>
  comms.tile_store %t0, %own[%o0] : tensor<1xi32>, memref<2x5xi32>
  comms.tile_store %t1, %own[%o1] : tensor<1xi32>, memref<2x5xi32>
  comms.tile_store %t2, %own[%o2] : tensor<1xi32>, memref<2x5xi32>
  comms.tile_store %t3, %own[%o3] : tensor<1xi32>, memref<2x5xi32>
  comms.tile_store %t4, %own[%o4] : tensor<1xi32>, memref<2x5xi32>
  comms.return
}
