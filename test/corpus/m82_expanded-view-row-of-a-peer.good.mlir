// The repaired twin of: A flat window is seen as rows by expand_shape, and rank r stores row r of the next; bad: the reader takes a row before the barrier.
// From: reshaped symmetric memory
// META {"ranks": 4}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<64xf32>, %y: memref<16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %to = comms.peer %w at %nxt of %team : !comms.window<64xf32> -> memref<64xf32>
  %rows = memref.expand_shape %to [[0, 1]] output_shape [4, 16] : memref<64xf32> into memref<4x16xf32>
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  scf.for %j = %c0 to %c16 step %c1 {
    %a = memref.load %x[%j] : memref<16xf32>
    memref.store %a, %rows[%me, %j] : memref<4x16xf32>
  }
  %dn0 = arith.addi %me, %n : index
  %dn = arith.subi %dn0, %c1 : index
  %prv = arith.remui %dn, %n : index
  %at = arith.muli %prv, %c16 : index
  comms.barrier %team block
  %t = comms.tile_load %own[%at] : memref<64xf32> -> tensor<16xf32>
  comms.tile_store %t, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
