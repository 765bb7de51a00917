// The repaired twin of: The answer comes from a rank that the put did not go to.
// From: NCCL GIN: a signal orders what went to its peer in its context
// META {}
comms.kernel @k(%x: !comms.window<32xf32>, %w: !comms.window<32xf32>, %s: !comms.signal<4>, %t: !comms.counter<2>, %y: memref<32xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c2_ = arith.constant 2 : index
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
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %own = comms.local %w : !comms.window<32xf32> -> memref<32xf32>
  %mine = comms.local %x : !comms.window<32xf32> -> memref<32xf32>
  comms.put %mine[%c0] to %w[%c0] count %c16 at %nxt of %team gin <> : memref<32xf32>, !comms.window<32xf32>
  comms.signal inc %s[%c0] at %nxt of %team gin <> : !comms.signal<4>
  %z23 = comms.wait_signal %s[%c0] ge %e : !comms.signal<4>
  %g24 = comms.tile_load %own[%c0] : memref<32xf32> -> tensor<16xf32>
  comms.tile_store %g24, %y[%c0] : tensor<16xf32>, memref<32xf32>
  comms.signal inc %s[%c2_] at %prv of %team : !comms.signal<4>
  %q = comms.wait_signal %s[%c2_] ge %e : !comms.signal<4>
  comms.tile_store %one, %mine[%c0] : tensor<16xf32>, memref<32xf32>
  comms.barrier %team block
  comms.return
}
