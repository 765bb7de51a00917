// A view of a view: constant offsets add up; bad: the inner one begins one element early, where another rank writes.
// From: slices of slices
// META {"ranks": 3}
comms.kernel @k(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 3, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f = arith.constant 1.0 : f32
  %team = comms.team world
  %me = comms.rank %team
  %to = comms.peer %w at %c2 of %team : !comms.window<64xf32> -> memref<64xf32>
  %half = memref.subview %to[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  %lo = memref.subview %half[0] [8] [1] : memref<32xf32, strided<[1], offset: 16>> to memref<8xf32, strided<[1], offset: 16>>
  %hi = memref.subview %half[7] [8] [1] : memref<32xf32, strided<[1], offset: 16>> to memref<8xf32, strided<[1], offset: 23>>
  %c7 = arith.constant 7 : index
  %is0 = arith.cmpi eq, %me, %c0 : index
  %is1 = arith.cmpi eq, %me, %c1 : index
  comms.barrier %team block
  scf.if %is0 {
    memref.store %f, %lo[%c7] : memref<8xf32, strided<[1], offset: 16>>
  }
  scf.if %is1 {
    memref.store %f, %hi[%c0] : memref<8xf32, strided<[1], offset: 23>>
  }
  comms.barrier %team block
  comms.return
}
