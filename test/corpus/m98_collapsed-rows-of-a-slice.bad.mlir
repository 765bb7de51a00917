// Two rows of a slice are taken as one; bad: the slice begins a row early.
// From: collapse_shape
// META {"ranks": 2}
comms.kernel @k(%w: !comms.window<4x16xf32>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 1.0 : f32
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %to = comms.peer %w at %other of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %own = comms.local %w : !comms.window<4x16xf32> -> memref<4x16xf32>
  %rows = memref.subview %to[1, 0] [2, 16] [1, 1] : memref<4x16xf32> to memref<2x16xf32, strided<[16, 1], offset: 16>>
  %flat = memref.collapse_shape %rows [[0, 1]] : memref<2x16xf32, strided<[16, 1], offset: 16>> into memref<32xf32, strided<[1], offset: 16>>
  scf.for %i = %c0 to %c32 step %c1 {
    memref.store %f, %flat[%i] : memref<32xf32, strided<[1], offset: 16>>
  }
  %t = comms.tile_load %own[%c16] : memref<4x16xf32> -> tensor<16xf32>
  comms.tile_store %t, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
