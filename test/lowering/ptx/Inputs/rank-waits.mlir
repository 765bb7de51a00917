// Rank 0 waits, and its threads meet; those of rank 1 go the other way.
comms.kernel @rank_waits(%x: memref<64xi32>, %w: memref<64xi32>, %q: memref<64xi32>, %s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %epoch = comms.epoch
  %want = arith.index_cast %epoch : index to i64
  %rank = comms.rank %team
  %first = arith.cmpi eq, %rank, %c0 : index
  %t = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<64xi32>
  comms.tile_store %t, %w[%c0] : tensor<64xi32>, memref<64xi32>
  scf.if %first {
    %seen = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  } else {
    %u = comms.tile_load %w[%c1] : memref<64xi32> -> tensor<62xi32>
    comms.tile_store %u, %q[%c0] : tensor<62xi32>, memref<64xi32>
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<1>
  }
  comms.return
}
