// The repaired twin of: Two roles of two blocks each write halves of a window; bad: the second role takes the block's number as it is in the kernel modulo three.
// From: roles and block numbers
// META {"ranks": 2}
comms.kernel @k(%w: !comms.window<64xf32>, %x: memref<16xf32>) attributes {ranks = 2, blocks = 4} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %b = comms.block_id
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  comms.role "a" blocks 0 to 2 {
    %at = arith.muli %b, %c16 : index
    %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %t, %own[%at] : tensor<16xf32>, memref<64xf32>
  }
  comms.role "b" blocks 2 to 4 {
    %m = arith.remui %b, %c3 : index
    %at = arith.muli %m, %c16 : index
    %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
    %u = arith.addf %t, %t : tensor<16xf32>
    comms.tile_store %u, %own[%at] : tensor<16xf32>, memref<64xf32>
  }
  comms.return
}
