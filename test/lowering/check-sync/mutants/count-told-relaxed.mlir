// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Rank 2 has heard of rank 1's signal by a relaxed one: its own may come first, and the wait is met before the data.

comms.kernel @told_relaxed(%x: !comms.window<64xf32>, %y: memref<64xf32>, %s: !comms.signal<2>) attributes {ranks = 3 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %twice = arith.muli %epoch, %c2 : index
  %less = arith.subi %twice, %one : index
  %want = arith.index_cast %less : index to i64
  %turn = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %x at %c0 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is1 = arith.cmpi eq, %me, %c1 : index
  scf.if %is1 {
    comms.tile_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %world order release : !comms.signal<2>
    comms.signal inc %s[%c1] at %c2 of %world order relaxed : !comms.signal<2>
  }
  %is2 = arith.cmpi eq, %me, %c2 : index
  scf.if %is2 {
    %w = comms.wait_signal %s[%c1] ge %turn order relaxed : !comms.signal<2>
    // expected-note @below {{the signal that may run ahead}}
    comms.signal inc %s[%c0] at %c0 of %world order relaxed : !comms.signal<2>
  }
  %is0 = arith.cmpi eq, %me, %c0 : index
  scf.if %is0 {
    // expected-error @below {{'comms.wait_signal' op counts signals on signal s[0] of rank 0 up to 1 in launch 1, but a signal of launch 1 by rank 2 block 0 may come before that of rank 1 block 0 and be counted in its place}}
    // expected-note @below {{give each sender a cell of its own, or keep senders from running ahead with a barrier}}
    %w = comms.wait_signal %s[%c0] ge %want order acquire : !comms.signal<2>
    %t = comms.tile_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// With a release and an acquire between the two, either signal shows the data.

comms.kernel @acquired(%x: !comms.window<64xf32>, %y: memref<64xf32>, %s: !comms.signal<2>) attributes {ranks = 3 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %twice = arith.muli %epoch, %c2 : index
  %less = arith.subi %twice, %one : index
  %want = arith.index_cast %less : index to i64
  %turn = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %x at %c0 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is1 = arith.cmpi eq, %me, %c1 : index
  scf.if %is1 {
    comms.tile_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %world order release : !comms.signal<2>
    comms.signal inc %s[%c1] at %c2 of %world order release : !comms.signal<2>
  }
  %is2 = arith.cmpi eq, %me, %c2 : index
  scf.if %is2 {
    %w = comms.wait_signal %s[%c1] ge %turn order acquire : !comms.signal<2>
    comms.signal inc %s[%c0] at %c0 of %world order release : !comms.signal<2>
  }
  %is0 = arith.cmpi eq, %me, %c0 : index
  scf.if %is0 {
    %w = comms.wait_signal %s[%c0] ge %want order acquire : !comms.signal<2>
    %t = comms.tile_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}
