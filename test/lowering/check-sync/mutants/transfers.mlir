// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Transfers go on when their ops have ended.

// -----

// Two puts to one place are ordered by a release alone.

comms.kernel @two_puts(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  scf.if %r1 {
    // expected-note @below {{the transfer}}
    comms.put %out[%c0] to %x[%c0] count %c16 at %c0 of %team : memref<64xf32>, !comms.window<64xf32>
    // expected-error @below {{'comms.put' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, which a transfer before it may still write}}
    // expected-note @below {{only a release orders what a put writes: a signal or a barrier between them}}
    comms.put %out[%c16] to %x[%c0] count %c16 at %c0 of %team : memref<64xf32>, !comms.window<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// A put's source is read some time later.

comms.kernel @put_source_overwritten(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  scf.if %r1 {
    // expected-note @below {{the transfer}}
    comms.put %out[%c0] to %x[%c0] count %c16 at %c0 of %team : memref<64xf32>, !comms.window<64xf32>
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'out' at rank 1 on rank 1 block 0 in launch 1, which a transfer before it may still read}}
    // expected-note @below {{let comms.flush come between, of a team that the peer belongs to, or a barrier}}
    comms.tile_store %one, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// That time may be after a relaxed signal.

comms.kernel @put_source_peer(%x: !comms.window<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    // expected-note @below {{the read}}
    comms.put %own[%c0] to %x[%c16] count %c16 at %c0 of %team : memref<64xf32>, !comms.window<64xf32>
    comms.signal inc %s[%c0] at %c0 of %team order relaxed : !comms.signal<8>
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    %p1 = comms.peer %x at %c1 of %team : !comms.window<64xf32> -> memref<64xf32>
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 1 on rank 0 block 0 in launch 1, with no order between it and the read by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.tile_store %one, %p1[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// What a put writes is not there for its own block, either.

comms.kernel @put_then_own_load(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  // expected-note @below {{the transfer}}
  comms.put %out[%c0] to %x[%c0] count %c16 at %me of %team : memref<64xf32>, !comms.window<64xf32>
  // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 0 on rank 0 block 0 in launch 1, which a transfer before it may still write}}
  // expected-note @below {{only a release orders what a put writes: a signal or a barrier between them}}
  %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
  // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'out' at rank 0 on rank 0 block 0 in launch 1, which a transfer before it may still read}}
  // expected-note @below {{let comms.flush come between, of a team that the peer belongs to, or a barrier}}
  comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  comms.barrier %team grid
  comms.return
}

// -----

// A bulk copy is over at its wait.

comms.kernel @bulk_before_wait(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    // expected-note @below {{the write}}
    %b = comms.bulk_copy %own[%c0] to %at0[%c16] count %c16 : memref<64xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
    comms.bulk_wait %b
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    // expected-error @below {{'comms.tile_load' op reads [16, 32) of 'x' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %own[%c16] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// A get through an adapter is over at a flush.

comms.kernel @gin_get(%x: !comms.window<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  comms.barrier %team grid
  scf.if %r1 {
    // expected-note @below {{the transfer}}
    // expected-error @below {{'comms.get' op writes [16, 32) of 'x' at rank 1 on rank 1 block 0 in launch 2, which a transfer before it may still write}}
    // expected-note @below {{let comms.flush come between, in the same context and of a team that the peer belongs to}}
    comms.get %x[%c0] to %own[%c16] count %c16 at %c0 of %team gin <> : !comms.window<64xf32>, memref<64xf32>
  }
  scf.if %r1 {
    // expected-error @below {{'comms.tile_load' op reads [16, 32) of 'x' at rank 1 on rank 1 block 0 in launch 1, which a transfer before it may still write}}
    // expected-note @below {{let comms.flush come between, in the same context and of a team that the peer belongs to}}
    %t = comms.tile_load %own[%c16] : memref<64xf32> -> tensor<16xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// The flush is of the pairs of neighbors, which rank 0 of the world is in for rank 1 alone.

comms.kernel @flush_of_others(%data: !comms.window<4x32xf32>, %mine: memref<32xf32>)
    attributes {ranks = 4, blocks = 1} {
  %world = comms.team world
  %pair = comms.team_split %world inner 2
  %me = comms.rank %world
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %row = arith.muli %me, %c32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  // expected-note @below {{the transfer}}
  comms.put %mine[%c0] to %data[%row] count %c32 at %c0 of %world : memref<32xf32>, !comms.window<4x32xf32>
  comms.flush %pair
  // expected-error @below {{'comms.tile_store' op writes [0, 32) of 'mine' at rank 2 on rank 2 block 0 in launch 1, which a transfer before it may still read}}
  // expected-note @below {{let comms.flush come between, of a team that the peer belongs to, or a barrier}}
  comms.tile_store %zero, %mine[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The other member of the pair is in it.

comms.kernel @flush_of_pairs(%data: !comms.window<2x32xf32>, %mine: memref<32xf32>)
    attributes {ranks = 4, blocks = 1} {
  %world = comms.team world
  %pair = comms.team_split %world inner 2
  %me = comms.rank %pair
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %row = arith.muli %me, %c32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  comms.put %mine[%c0] to %data[%row] count %c32 at %c0 of %pair : memref<32xf32>, !comms.window<2x32xf32>
  comms.flush %pair
  comms.tile_store %zero, %mine[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Data say which rank is put to: the flush is of some of them.

comms.kernel @flush_of_some(%n: memref<1xi64>, %data: !comms.window<4x32xf32>, %mine: memref<32xf32>)
    attributes {ranks = 4, blocks = 1} {
  %world = comms.team world
  %pair = comms.team_split %world inner 2
  %me = comms.rank %world
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %row = arith.muli %me, %c32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %number = memref.load %n[%c0] : memref<1xi64>
  %peer = arith.index_cast %number : i64 to index
  // expected-note @below {{the transfer}}
  comms.put %mine[%c0] to %data[%row] count %c32 at %peer of %world : memref<32xf32>, !comms.window<4x32xf32>
  comms.flush %pair
  // expected-error @below {{'comms.tile_store' op writes [0, 32) of 'mine' at rank 0 on rank 0 block 0 in launch 1, which a transfer before it may still read}}
  // expected-note @below {{let comms.flush come between, of a team that the peer belongs to, or a barrier}}
  comms.tile_store %zero, %mine[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Barriers behind a get do not tell that it is over.

comms.kernel @get_between_barriers(%w: !comms.window<16xf32>, %z: !comms.window<16xf32>, %y: memref<16xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %own = comms.local %z : !comms.window<16xf32> -> memref<16xf32>
  %from = comms.peer %z at %other of %team : !comms.window<16xf32> -> memref<16xf32>
  comms.barrier %team block
  // expected-note @below {{the write}}
  comms.get %w[%c0] to %own[%c0] count %c16 at %other of %team gin <> : !comms.window<16xf32>, memref<16xf32>
  comms.barrier %team block
  // expected-error @below {{reads [0, 16) of 'z' at rank 1 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0}}
  // expected-note @below {{order them}}
  // expected-note @below {{what goes through the adapter is ordered by a signal by gin}}
  %got = comms.tile_load %from[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %got, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.flush %team gin <>
  comms.barrier %team block
  comms.return
}

// -----

// Nor that a copy is.

comms.kernel @copy_between_barriers(%x: memref<16xf32>, %z: !comms.window<16xf32>, %y: memref<16xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %own = comms.local %z : !comms.window<16xf32> -> memref<16xf32>
  %from = comms.peer %z at %other of %team : !comms.window<16xf32> -> memref<16xf32>
  comms.barrier %team block
  // expected-note @below {{the write}}
  %copy = comms.bulk_copy %x[%c0] to %own[%c0] count %c16 : memref<16xf32>, memref<16xf32>
  comms.barrier %team block
  // expected-error @below {{reads [0, 16) of 'z' at rank 1 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0}}
  // expected-note @below {{order them}}
  %got = comms.tile_load %from[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %got, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.bulk_wait %copy
  comms.barrier %team block
  comms.return
}
