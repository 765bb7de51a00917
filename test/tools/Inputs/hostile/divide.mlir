// 63 / 0 is -1, and the offset 3000; 63 / 2 gives the offset 0.
comms.kernel @k(%in: memref<16xi64>, %x: memref<16xi64>) attributes {ranks = 1, blocks = 1} {
  %z = arith.constant 0 : index
  %two = arith.constant 2 : index
  %k = arith.constant 1000 : index
  %n = arith.constant 63 : index
  %v = arith.constant 1 : i64
  %al = memref.load %in[%z] : memref<16xi64>
  %a = arith.index_cast %al : i64 to index
  %b = arith.andi %a, %two : index
  %q = arith.divui %n, %b : index
  %d = arith.minsi %two, %q : index
  %three = arith.subi %two, %d : index
  %off = arith.muli %three, %k : index
  // Here.
  memref.store %v, %x[%off] : memref<16xi64>
  comms.return
}
