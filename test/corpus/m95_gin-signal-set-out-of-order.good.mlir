// The repaired twin of: Two puts with signals in one context; bad: the wait counts only the first, the second tile is read too.
// From: GIN ordering
// META {"ranks": 2}
comms.kernel @k(%x: !comms.window<32xf32>, %w: !comms.window<32xf32>, %s: !comms.signal<1>, %y: memref<32xf32>) attributes {ranks = 2, blocks = 1} {
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
  %one = arith.constant 1 : i64
  %two = arith.addi %e, %e : i64
  %less = arith.subi %two, %one : i64
  %mine = comms.local %x : !comms.window<32xf32> -> memref<32xf32>
  comms.barrier %team block
  comms.put %mine[%c0] to %w[%c0] count %c16 at %nxt of %team gin <> : memref<32xf32>, !comms.window<32xf32>
  comms.signal inc %s[%c0] at %nxt of %team gin <> : !comms.signal<1>
  comms.put %mine[%c16] to %w[%c16] count %c16 at %nxt of %team gin <> : memref<32xf32>, !comms.window<32xf32>
  comms.signal inc %s[%c0] at %nxt of %team gin <> : !comms.signal<1>
  %z = comms.wait_signal %s[%c0] ge %two : !comms.signal<1>
  %own = comms.local %w : !comms.window<32xf32> -> memref<32xf32>
  %g = comms.tile_load %own[%c16] : memref<32xf32> -> tensor<16xf32>
  comms.tile_store %g, %y[%c16] : tensor<16xf32>, memref<32xf32>
  comms.flush %team gin <>
  comms.barrier %team block
  comms.return
}
