// RUN: comms-opt %s --comms-unroll-ranks --canonicalize | FileCheck %s

// Every block has two of eight tiles: straight code.
// CHECK-LABEL: comms.kernel @two
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK:         comms.return
comms.kernel @two(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c8 = arith.constant 8 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c8 step %blocks {
    %at = arith.muli %tile, %c8 : index
    %t = comms.tile_load %x[%at] : memref<64xf32> -> tensor<8xf32>
    comms.tile_store %t, %y[%at] : tensor<8xf32>, memref<64xf32>
  }
  comms.return
}

// Sixteen turns: four at a time.
// CHECK-LABEL: comms.kernel @many
// CHECK:         scf.for
// CHECK-COUNT-4: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK:         comms.return
comms.kernel @many(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c64 step %blocks {
    %at = arith.muli %tile, %c8 : index
    %t = comms.tile_load %x[%at] : memref<512xf32> -> tensor<8xf32>
    comms.tile_store %t, %y[%at] : tensor<8xf32>, memref<512xf32>
  }
  comms.return
}

// One tile for some of the blocks: a branch. Not all have as many: a loop.
// CHECK-LABEL: comms.kernel @some
// CHECK:         scf.if
// CHECK-NEXT:      comms.tile_load
// CHECK:         scf.for
// CHECK:           comms.tile_load
// CHECK-NOT:       comms.tile_load
// CHECK:         comms.return
comms.kernel @some(%x: memref<8xf32>, %y: memref<8x8xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c3 step %blocks {
    %t = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %t, %y[%c0] : tensor<8xf32>, memref<8x8xf32>
  }
  scf.for %tile = %block to %c6 step %blocks {
    %t = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
    comms.tile_store %t, %y[%c0] : tensor<8xf32>, memref<8x8xf32>
  }
  comms.return
}

// Where threads meet in a turn, turns stay apart.
// CHECK-LABEL: comms.kernel @meet
// CHECK:         scf.for
// CHECK:           comms.row_reduce
// CHECK-NOT:       comms.row_reduce
comms.kernel @meet(%x: memref<8x8xf32>, %y: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c8 = arith.constant 8 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c8 step %blocks {
    %at = arith.muli %tile, %c8 : index
    %t = comms.tile_load %x[%at] : memref<8x8xf32> -> tensor<8xf32>
    %sum = comms.row_reduce sum %t : tensor<8xf32> -> tensor<1xf32>
    comms.tile_store %sum, %y[%tile] : tensor<1xf32>, memref<8xf32>
  }
  comms.return
}

// Five loads in each of eight turns are more than registers hold.
// CHECK-LABEL: comms.kernel @wide
// CHECK:         scf.for
// CHECK-COUNT-5: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK:         comms.return
comms.kernel @wide(%x: memref<5x256xf32>, %y: memref<256xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c32 step %blocks {
    %a = arith.muli %tile, %c8 : index
    %b = arith.addi %a, %c256 : index
    %c = arith.addi %b, %c256 : index
    %d = arith.addi %c, %c256 : index
    %e = arith.addi %d, %c256 : index
    %0 = comms.tile_load %x[%a] : memref<5x256xf32> -> tensor<8xf32>
    %1 = comms.tile_load %x[%b] : memref<5x256xf32> -> tensor<8xf32>
    %2 = comms.tile_load %x[%c] : memref<5x256xf32> -> tensor<8xf32>
    %3 = comms.tile_load %x[%d] : memref<5x256xf32> -> tensor<8xf32>
    %4 = comms.tile_load %x[%e] : memref<5x256xf32> -> tensor<8xf32>
    %5 = arith.addf %0, %1 : tensor<8xf32>
    %6 = arith.addf %5, %2 : tensor<8xf32>
    %7 = arith.addf %6, %3 : tensor<8xf32>
    %8 = arith.addf %7, %4 : tensor<8xf32>
    comms.tile_store %8, %y[%a] : tensor<8xf32>, memref<256xf32>
  }
  comms.return
}
