// A rank takes an integer for what it stored, but a packet lies there.
// From: integers in memory that packets have written over
// META {"ranks": 2}
comms.kernel @k(%m: !comms.window<16xi64>, %x: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %own = comms.local %m : !comms.window<16xi64> -> memref<16xi64>
  %to = comms.peer %m at %other of %team : !comms.window<16xi64> -> memref<16xi64>
  memref.store %zero, %own[%c0] : memref<16xi64>
  comms.barrier %team block
  comms.packet_store %one, %to[%c0] flag %flag : tensor<16xf32>, memref<16xi64>
  %t = comms.packet_load %own[%c0] flag %flag : memref<16xi64> -> tensor<16xf32>
  comms.barrier %team block
  %v = memref.load %own[%c0] : memref<16xi64>
  %bad = arith.cmpi ne, %v, %zero : i64
  %root = arith.cmpi eq, %me, %c0 : index
  %b = arith.andi %root, %bad : i1
  scf.if %b {
    comms.barrier %team block
  }
  comms.barrier %team block
  comms.return
}
