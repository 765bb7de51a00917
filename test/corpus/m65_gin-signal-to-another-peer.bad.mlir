// put to the next rank through the adapter, the signal to the previous one, which passes it on.
// From: NCCL GIN: ordering is per peer and context
// META {}
comms.kernel @k(%x: !comms.window<16xf32>, %w: !comms.window<16xf32>, %s: !comms.signal<4>, %y: memref<16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %dn0 = arith.addi %me, %n : index
  %dn = arith.subi %dn0, %c1 : index
  %prv = arith.remui %dn, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %mine = comms.local %x : !comms.window<16xf32> -> memref<16xf32>
  comms.put %mine[%c0] to %w[%c0] count %c16 at %nxt of %team gin <> : memref<16xf32>, !comms.window<16xf32>
  comms.signal inc %s[%c0] at %prv of %team gin <> : !comms.signal<4>
  %z0 = comms.wait_signal %s[%c0] ge %e : !comms.signal<4>
  %np = arith.addi %nxt, %c1 : index
  %nn = arith.remui %np, %n : index
  comms.signal inc %s[%c1] at %nn of %team : !comms.signal<4>
  %z = comms.wait_signal %s[%c1] ge %e : !comms.signal<4>
  %got = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %got, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
