// RUN: comms-opt %s -comms-eliminate-barriers -split-input-file | FileCheck %s

// Each kernel has two barriers, and needs both.

// CHECK-LABEL: @window_access_between
// CHECK-COUNT-2: comms.barrier
comms.kernel @window_access_between(%w: !comms.window<8xf32>, %t: memref<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %m = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
  comms.barrier %team block
  %x = comms.tile_load %m[%c0] : memref<8xf32> -> tensor<8xf32>
  comms.barrier %team block
  comms.tile_store %x, %t[%c0] : tensor<8xf32>, memref<8xf32>
  comms.return
}

// -----

// CHECK-LABEL: @access_in_loop_between
// CHECK-COUNT-2: comms.barrier
comms.kernel @access_in_loop_between(%w: !comms.window<8xf32>, %t: memref<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  comms.barrier %team block
  scf.for %i = %c0 to %c2 step %c1 {
    %m = comms.peer %w at %i of %team : !comms.window<8xf32> -> memref<8xf32>
    %x = comms.tile_load %m[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %x, %t[%c0] : tensor<8xf32>, memref<8xf32>
  }
  comms.barrier %team block
  comms.return
}

// -----

// Blocks of one rank share its memory, and meet at a grid barrier.
// CHECK-LABEL: @rank_memory_between_grid_barriers
// CHECK-COUNT-2: comms.barrier
comms.kernel @rank_memory_between_grid_barriers(%t: memref<8xf32>, %x: f32) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  comms.barrier %team grid
  %tile = comms.splat %x : f32 -> tensor<8xf32>
  comms.tile_store %tile, %t[%c0] : tensor<8xf32>, memref<8xf32>
  comms.barrier %team grid
  comms.return
}

// -----

// CHECK-LABEL: @other_team
// CHECK-COUNT-2: comms.barrier
comms.kernel @other_team() attributes {ranks = 4 : i64} {
  %team = comms.team world
  %half = comms.team_split %team inner 2
  comms.barrier %team block
  comms.barrier %half block
  comms.return
}

// -----

// CHECK-LABEL: @other_split
// CHECK-COUNT-2: comms.barrier
comms.kernel @other_split() attributes {ranks = 4 : i64} {
  %team = comms.team world
  %half = comms.team_split %team inner 2
  %other = comms.team_split %team outer 2
  comms.barrier %half block
  comms.barrier %other block
  comms.return
}

// -----

// CHECK-LABEL: @other_extent
// CHECK-COUNT-2: comms.barrier
comms.kernel @other_extent() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.barrier %team grid
  comms.return
}

// -----

// CHECK-LABEL: @in_loop
// CHECK: comms.barrier
// CHECK: scf.for
// CHECK: comms.barrier
comms.kernel @in_loop() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  comms.barrier %team block
  scf.for %i = %c0 to %c2 step %c1 {
    comms.barrier %team block
  }
  comms.return
}

// -----

// CHECK-LABEL: @in_if
// CHECK: scf.if
// CHECK: comms.barrier
// CHECK: comms.barrier
comms.kernel @in_if(%on: i1) attributes {ranks = 2 : i64} {
  %team = comms.team world
  scf.if %on {
    comms.barrier %team block
  }
  comms.barrier %team block
  comms.return
}

// -----

// CHECK-LABEL: @signal_between
// CHECK-COUNT-2: comms.barrier
comms.kernel @signal_between(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  comms.barrier %team block
  comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<1>
  comms.barrier %team block
  comms.return
}

// -----

// The two halves of another barrier are no pair to remove.
// CHECK-LABEL: @split_barrier_between
// CHECK: comms.barrier %
// CHECK: comms.barrier_arrive
// CHECK: comms.barrier_wait
// CHECK: comms.barrier %
comms.kernel @split_barrier_between() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  %a = comms.barrier_arrive %team block
  %b = comms.barrier_wait %a
  comms.barrier %team block
  comms.return
}

// -----

// The next launch may be another kernel.
// CHECK-LABEL: @last
// CHECK: comms.barrier
// CHECK-NEXT: comms.return
comms.kernel @last() attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.return
}

// -----

// Rank 0 passes four barriers here, the others two here and two behind: what meets is counted.
// CHECK-LABEL: @ranks_apart
// CHECK-COUNT-8: comms.barrier
comms.kernel @ranks_apart(%w: !comms.window<8xf32>, %t: memref<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %me = comms.rank %team
  %first = arith.cmpi eq, %me, %c0 : index
  %m = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
  scf.if %first {
    comms.barrier %team block
    comms.barrier %team block
    comms.barrier %team block
    comms.barrier %team block
  } else {
    comms.barrier %team block
    comms.barrier %team block
    %x = comms.tile_load %m[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %x, %t[%c0] : tensor<8xf32>, memref<8xf32>
    comms.barrier %team block
    comms.barrier %team block
  }
  comms.return
}

// -----

// Both ranks pass the two in the middle, and one more in a place of its own: they meet in different ones.
// CHECK-LABEL: @shifted
// CHECK-COUNT-4: comms.barrier
comms.kernel @shifted(%w: !comms.window<8xf32>, %t: memref<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %me = comms.rank %team
  %first = arith.cmpi eq, %me, %c0 : index
  %m = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
  scf.if %first {
    comms.barrier %team block
    %x = comms.tile_load %t[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %x, %m[%c0] : tensor<8xf32>, memref<8xf32>
  }
  comms.barrier %team block
  comms.barrier %team block
  scf.if %first {
  } else {
    %part = comms.peer %w at %c0 of %team : !comms.window<8xf32> -> memref<8xf32>
    %y = comms.tile_load %part[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %y, %t[%c0] : tensor<8xf32>, memref<8xf32>
    comms.barrier %team block
  }
  comms.return
}

// -----

// What a peer does behind the barrier may let another block of this rank go on.
// CHECK-LABEL: @rank_memory_that_another_block_loads
// CHECK-COUNT-2: comms.barrier
comms.kernel @rank_memory_that_another_block_loads(%y: memref<16xf32>, %out: memref<16xf32>, %s: !comms.signal<1>, %x: f32)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %epoch = comms.epoch
  %want = arith.index_cast %epoch : index to i64
  comms.role "store" blocks 0 to 1 {
    %tile = comms.splat %x : f32 -> tensor<16xf32>
    comms.barrier %team block
    comms.tile_store %tile, %y[%c0] : tensor<16xf32>, memref<16xf32>
    comms.barrier %team block
    comms.for_peers %team as %peer {
      comms.signal inc %s[%c0] at %peer of %team : !comms.signal<1>
    }
  }
  comms.role "load" blocks 1 to 2 {
    %seen = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
    %v = comms.tile_load %y[%c0] after %seen : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %v, %out[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.return
}
