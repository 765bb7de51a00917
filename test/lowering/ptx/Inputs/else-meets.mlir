// Both ways of a branch load what another thread has stored before it.
comms.kernel @else_meets(%x: memref<64xi32>, %w: memref<64xi32>, %y: memref<64xi32>, %q: memref<64xi32>, %c: memref<1xi32>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %t = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<64xi32>
  comms.tile_store %t, %w[%c0] : tensor<64xi32>, memref<64xi32>
  %v = memref.load %c[%c0] : memref<1xi32>
  %positive = arith.cmpi sgt, %v, %zero : i32
  scf.if %positive {
    %u = comms.tile_load %w[%c1] : memref<64xi32> -> tensor<60xi32>
    comms.tile_store %u, %y[%c0] : tensor<60xi32>, memref<64xi32>
  } else {
    %u = comms.tile_load %w[%c1] : memref<64xi32> -> tensor<62xi32>
    comms.tile_store %u, %q[%c0] : tensor<62xi32>, memref<64xi32>
  }
  comms.return
}
