// Two blocks that branch to each other forever.
comms.kernel @blocks(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  cf.br ^turn
^turn:
  %v = memref.load %x[%c0] : memref<8xf32>
  memref.store %v, %x[%c0] : memref<8xf32>
  cf.br ^again
^again:
  cf.br ^turn
}
