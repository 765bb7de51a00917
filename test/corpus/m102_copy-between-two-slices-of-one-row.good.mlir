// The repaired twin of: A row is moved by 16 within a peer's window, while that rank reads the source; bad: while it reads the destination.
// From: memmove
// META {"ranks": 2}
comms.kernel @k(%w: !comms.window<64xf32>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %to = comms.peer %w at %other of %team : !comms.window<64xf32> -> memref<64xf32>
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %a = memref.subview %to[0] [16] [1] : memref<64xf32> to memref<16xf32, strided<[1]>>
  %b = memref.subview %to[16] [16] [1] : memref<64xf32> to memref<16xf32, strided<[1], offset: 16>>
  scf.for %i = %c0 to %c16 step %c1 {
    %v = memref.load %a[%i] : memref<16xf32, strided<[1]>>
    memref.store %v, %b[%i] : memref<16xf32, strided<[1], offset: 16>>
  }
  %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
  comms.tile_store %t, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
