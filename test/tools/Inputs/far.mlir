// Reads at an offset that the user gives.
comms.kernel @far(%x: memref<8xf32>, %y: memref<4xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%at] : memref<8xf32> -> tensor<4xf32>
  comms.tile_store %tile, %y[%c0] : tensor<4xf32>, memref<4xf32>
  comms.return
}
