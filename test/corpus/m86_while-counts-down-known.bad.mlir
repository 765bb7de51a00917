// A while of known length sends a tile in each round and hears an answer; bad: the last answer is for another round.
// From: loops by while
// META {"ranks": 2}
comms.kernel @k(%x: memref<16xf32>, %w: !comms.window<16xf32>, %s: !comms.signal<2>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 1} {
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
  %four = arith.constant 4 : i64
  %one = arith.constant 1 : i64
  %e0 = arith.subi %e, %one : i64
  %base = arith.muli %e0, %four : i64
  %to = comms.peer %w at %nxt of %team : !comms.window<16xf32> -> memref<16xf32>
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %end = scf.while (%i = %c0) : (index) -> index {
    %go = arith.cmpi ult, %i, %c4 : index
    scf.condition(%go) %i : index
  } do {
  ^bb0(%i: index):
    %ii = arith.index_cast %i : index to i64
    %done = arith.addi %base, %ii : i64
    %want = arith.addi %done, %one : i64
    %old = arith.subi %done, %one : i64
    %z0 = comms.wait_signal %s[%c1] ge %old : !comms.signal<2>
    %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %t, %to[%c0] : tensor<16xf32>, memref<16xf32>
    comms.signal inc %s[%c0] at %nxt of %team : !comms.signal<2>
    %z = comms.wait_signal %s[%c0] ge %want : !comms.signal<2>
    %g = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %g, %y[%c0] : tensor<16xf32>, memref<16xf32>
    comms.signal inc %s[%c1] at %nxt of %team : !comms.signal<2>
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  comms.return
}
