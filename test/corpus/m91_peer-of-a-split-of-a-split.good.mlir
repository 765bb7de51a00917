// The repaired twin of: A split of a split: pairs at distance 4 of 8 ranks; bad: the distance-2 team's rank is used.
// From: nested teams
// META {"ranks": 8}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<16xf32>, %s: !comms.signal<1>, %y: memref<16xf32>) attributes {ranks = 8, blocks = 1} {
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
  %a = comms.team_split %team outer 2
  %bteam = comms.team_split %a outer 2
  %ra = comms.rank %a
  %rb = comms.rank %bteam
  %other = arith.xori %rb, %c1 : index
  %to = comms.peer %w at %other of %bteam : !comms.window<16xf32> -> memref<16xf32>
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %t, %to[%c0] : tensor<16xf32>, memref<16xf32>
  %o2 = arith.xori %rb, %c1 : index
  comms.signal inc %s[%c0] at %o2 of %bteam : !comms.signal<1>
  %z = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %g = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %g, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %bteam block
  comms.return
}
