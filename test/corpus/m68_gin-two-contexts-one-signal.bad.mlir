// Two halves travel in two contexts; one signal in the second says nothing of the first.
// From: nccl #2302
// META {}
comms.kernel @k(%x: !comms.window<32xf32>, %w: !comms.window<32xf32>, %s: !comms.signal<4>, %y: memref<32xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %own = comms.local %w : !comms.window<32xf32> -> memref<32xf32>
  %mine = comms.local %x : !comms.window<32xf32> -> memref<32xf32>
  comms.put %mine[%c0] to %w[%c0] count %c16 at %nxt of %team gin <> : memref<32xf32>, !comms.window<32xf32>
  comms.put %mine[%c16] to %w[%c16] count %c16 at %nxt of %team gin <context_id = 1> : memref<32xf32>, !comms.window<32xf32>
  comms.signal inc %s[%c0] at %nxt of %team gin <> : !comms.signal<4>
  comms.signal inc %s[%c1] at %nxt of %team gin <context_id = 1> : !comms.signal<4>
  %z1 = comms.wait_signal %s[%c1] ge %e : !comms.signal<4>
  %got = comms.tile_load %own[%c0] : memref<32xf32> -> tensor<32xf32>
  comms.tile_store %got, %y[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %team block
  comms.return
}
