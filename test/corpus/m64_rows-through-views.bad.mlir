// Rows of a window are reached through views; bad: two senders take one row.
// From: views over symmetric memory
// META {}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<4x16xf32>, %y: memref<4x16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  comms.barrier %team block
  %to = comms.peer %w at %c0 of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %flat = memref.collapse_shape %to [[0, 1]] : memref<4x16xf32> into memref<64xf32>
  %row = arith.remui %me, %c2 : index
  %at = arith.muli %row, %c16 : index
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %t, %flat[%at] : tensor<16xf32>, memref<64xf32>
  comms.barrier %team block
  %own = comms.local %w : !comms.window<4x16xf32> -> memref<4x16xf32>
  memref.copy %own, %y : memref<4x16xf32> to memref<4x16xf32>
  comms.barrier %team block
  comms.return
}
