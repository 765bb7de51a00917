// The repaired twin of: memref.copy out of a peer's window stands before the barrier that says it is filled.
// From: reading the peer's data before its signal
// META {}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<16xf32>, %y: memref<16xf32>) attributes {ranks = 4, blocks = 1} {
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %from = comms.peer %w at %nxt of %team : !comms.window<16xf32> -> memref<16xf32>
  memref.copy %x, %own : memref<16xf32> to memref<16xf32>
  comms.barrier %team block
  memref.copy %from, %y : memref<16xf32> to memref<16xf32>
  comms.barrier %team block
  comms.return
}
