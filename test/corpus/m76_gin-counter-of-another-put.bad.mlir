// The counter tells that the other put has left its source.
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
  comms.put %mine[%c0] to %w[%c0] count %c16 at %nxt of %team counted %t[%c0] : !comms.counter<2> gin <> : memref<32xf32>, !comms.window<32xf32>
  comms.put %mine[%c16] to %w[%c16] count %c16 at %nxt of %team counted %t[%c1] : !comms.counter<2> gin <context_id = 1> : memref<32xf32>, !comms.window<32xf32>
  comms.signal inc %s[%c0] at %nxt of %team gin <> : !comms.signal<4>
  comms.signal inc %s[%c1] at %nxt of %team gin <context_id = 1> : !comms.signal<4>
  comms.wait_counter %t[%c0] ge %e : !comms.counter<2>
  comms.tile_store %one, %mine[%c16] : tensor<16xf32>, memref<32xf32>
  %z28 = comms.wait_signal %s[%c0] ge %e : !comms.signal<4>
  %z29 = comms.wait_signal %s[%c1] ge %e : !comms.signal<4>
  %g30 = comms.tile_load %own[%c0] : memref<32xf32> -> tensor<32xf32>
  comms.tile_store %g30, %y[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %team block
  comms.return
}
