// One way of a branch stores, the threads meet in the other, and behind both another thread loads.
comms.kernel @then_stores(%x: memref<64xi32>, %w: memref<64xi32>, %y: memref<1xi32>, %q: memref<64xi32>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<64xi32>
  %epoch = comms.epoch
  %always = arith.cmpi ne, %epoch, %c0 : index
  scf.if %always {
    comms.tile_store %t, %w[%c0] : tensor<64xi32>, memref<64xi32>
  } else {
    %s = comms.row_reduce sum %t : tensor<64xi32> -> tensor<1xi32>
    comms.tile_store %s, %y[%c0] : tensor<1xi32>, memref<1xi32>
  }
  %u = comms.tile_load %w[%c1] : memref<64xi32> -> tensor<62xi32>
  comms.tile_store %u, %q[%c0] : tensor<62xi32>, memref<64xi32>
  comms.return
}
