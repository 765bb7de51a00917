// RUN: comms-opt %s -comms-eliminate-barriers -split-input-file | FileCheck %s

// Each kernel keeps one barrier of its two.

// CHECK-LABEL: @adjacent
// CHECK: comms.barrier
// CHECK-NOT: comms.barrier
comms.kernel @adjacent() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.barrier %team block
  comms.return
}

// -----

// CHECK-LABEL: @same_team_made_twice
// CHECK: comms.barrier
// CHECK-NOT: comms.barrier
comms.kernel @same_team_made_twice() attributes {ranks = 4 : i64} {
  %a = comms.team world
  %b = comms.team world
  %c = comms.team_split %a inner 2
  %d = comms.team_split %b inner 2
  comms.barrier %c grid
  comms.barrier %d grid
  comms.return
}

// -----

// No other rank sees a rank's own memory, and there is no other block.
// CHECK-LABEL: @rank_memory_between_block_barriers
// CHECK: comms.barrier
// CHECK-NOT: comms.barrier
comms.kernel @rank_memory_between_block_barriers(%t: memref<8xf32>, %x: f32) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  comms.barrier %team block
  %tile = comms.splat %x : f32 -> tensor<8xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    comms.tile_store %tile, %t[%c0] : tensor<8xf32>, memref<8xf32>
  }
  comms.barrier %team block
  comms.return
}

// -----

// CHECK-LABEL: @scratch_between_grid_barriers
// CHECK: comms.barrier
// CHECK-NOT: comms.barrier
comms.kernel @scratch_between_grid_barriers(%x: f32) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  comms.barrier %team grid
  %s = comms.scratch : memref<8xf32, #comms.space<scratch>>
  %tile = comms.splat %x : f32 -> tensor<8xf32>
  comms.tile_store %tile, %s[%c0] : tensor<8xf32>, memref<8xf32, #comms.space<scratch>>
  comms.barrier %team grid
  comms.return
}

// -----

// What stays orders what both ordered.
// CHECK-LABEL: @joined
// CHECK: comms.barrier %{{.*}} block
// CHECK-NOT: relaxed
// CHECK-NOT: comms.barrier
comms.kernel @joined() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block order acquire
  comms.barrier %team block order release
  comms.return
}

// -----

// The same inside a loop's body, where both run equally often.
// CHECK-LABEL: @in_one_loop
// CHECK: scf.for
// CHECK: comms.barrier
// CHECK-NOT: comms.barrier
comms.kernel @in_one_loop() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  scf.for %i = %c0 to %c2 step %c1 {
    comms.barrier %team block
    comms.barrier %team block
  }
  comms.return
}

// -----

// The blocks of one number do the same on all ranks, also in a loop over what is the block's share, or in a launch of some kind.
// CHECK-LABEL: @shares
// CHECK-COUNT-2: comms.barrier
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @shares(%w: !comms.window<8xf32>) attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %block = comms.block_id
  %blocks = comms.num_blocks
  %epoch = comms.epoch
  %turn = arith.remui %epoch, %c2 : index
  %odd = arith.cmpi ne, %turn, %c0 : index
  scf.for %i = %block to %c8 step %blocks {
    comms.barrier %team block
    comms.barrier %team block
  }
  scf.if %odd {
    comms.barrier %team grid
    comms.barrier %team grid
  }
  comms.return
}
