// A handshake that begins at launch 30; bad: from then on the buffer is reused without it.
// From: warm-up
// META {"ranks": 2}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<16xf32>, %s: !comms.signal<1>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
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
  %c30 = arith.constant 30 : index
  %to = comms.peer %w at %nxt of %team : !comms.window<16xf32> -> memref<16xf32>
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  %late = arith.cmpi uge, %epoch, %c30 : index
  comms.barrier %team block
  comms.tile_store %t, %to[%c0] : tensor<16xf32>, memref<16xf32>
  comms.signal inc %s[%c0] at %nxt of %team : !comms.signal<1>
  %z = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %g = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %g, %y[%c0] : tensor<16xf32>, memref<16xf32>
  %early = arith.cmpi ult, %epoch, %c30 : index
  scf.if %early {
    comms.barrier %team block
  }
  scf.if %late {
    comms.tile_store %t, %to[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.return
}
