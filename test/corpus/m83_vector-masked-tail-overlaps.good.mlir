// The repaired twin of: Blocks share an array by vectors of 8 with a mask; bad: the mask of the first block covers one element of the second.
// From: masked tails
// META {"ranks": 2, "kw": {"blocks": 2}}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<16xf32>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 2} {
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
  %b = comms.block_id
  %c7 = arith.constant 7 : index
  %at = arith.muli %b, %c7 : index
  %len = arith.constant 7 : index
  %m = vector.create_mask %len : vector<8xi1>
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %v = vector.load %x[%at] : memref<16xf32>, vector<8xf32>
  vector.maskedstore %own[%at], %m, %v : memref<16xf32>, vector<8xi1>, vector<8xf32>
  comms.barrier %team grid
  %last = arith.cmpi eq, %b, %c0 : index
  scf.if %last {
    %far = comms.peer %w at %nxt of %team : !comms.window<16xf32> -> memref<16xf32>
    %t = comms.tile_load %far[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %t, %y[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.barrier %team grid
  comms.return
}
