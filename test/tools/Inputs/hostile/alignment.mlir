comms.kernel @k(%x: memref<16xf32>, %y: memref<16xf32>) attributes {ranks = 1, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = vector.load %x[%c1] {alignment = 64 : i64} : memref<16xf32>, vector<8xf32>
  vector.store %v, %y[%c0] : memref<16xf32>, vector<8xf32>
  comms.return
}
