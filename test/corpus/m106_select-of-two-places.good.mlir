// The repaired twin of: A place is chosen by rank with a select; bad: both choose the same for ranks 0 and 2.
// From: branch-free indexing
// META {"ranks": 3}
comms.kernel @k(%w: !comms.window<64xf32>, %x: memref<16xf32>) attributes {ranks = 3, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %team = comms.team world
  %me = comms.rank %team
  %low = arith.cmpi ult, %me, %c1 : index
  %mid = arith.cmpi eq, %me, %c1 : index
  %p0 = arith.select %mid, %c16, %c32 : index
  %at = arith.select %low, %c0, %p0 : index
  %to = comms.peer %w at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  comms.barrier %team block
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %t, %to[%at] : tensor<16xf32>, memref<64xf32>
  comms.barrier %team block
  comms.return
}
