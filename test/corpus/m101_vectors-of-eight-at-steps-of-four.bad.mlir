// Vectors of eight elements are stored by ranks at steps of eight; bad: at steps of four.
// From: vector.store
// META {"ranks": 2}
comms.kernel @k(%w: !comms.window<64xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 4 : index
  %v = arith.constant dense<1.0> : vector<8xf32>
  %team = comms.team world
  %me = comms.rank %team
  %at = arith.muli %me, %c8 : index
  %to = comms.peer %w at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  comms.barrier %team block
  vector.store %v, %to[%at] : memref<64xf32>, vector<8xf32>
  comms.barrier %team block
  comms.return
}
