// The repaired twin of: Packets go to the second half of a mailbox; bad: a plain store of the owner falls into them.
// From: mailboxes with a header
// META {"ranks": 2}
comms.kernel @k(%m: !comms.window<64xi64>, %x: memref<16xf32>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0 : i64
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %own = comms.local %m : !comms.window<64xi64> -> memref<64xi64>
  %to = comms.peer %m at %other of %team : !comms.window<64xi64> -> memref<64xi64>
  memref.store %zero, %own[%c20] : memref<64xi64>
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.packet_store %t, %to[%c32] flag %flag : tensor<16xf32>, memref<64xi64>
  %g = comms.packet_load %own[%c32] flag %flag : memref<64xi64> -> tensor<16xf32>
  comms.tile_store %g, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
