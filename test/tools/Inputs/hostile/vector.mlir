// Loads four elements at an offset that the user gives.
comms.kernel @vector(%x: memref<8xf32>, %y: memref<8xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%at] : memref<8xf32>, vector<4xf32>
  vector.store %v, %y[%c0] : memref<8xf32>, vector<4xf32>
  comms.return
}
