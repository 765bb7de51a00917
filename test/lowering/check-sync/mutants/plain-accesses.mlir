// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Loads and stores of other dialects, and blocks of one rank.

// -----

// A load of memref reads, too.

comms.kernel @memref_load(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 1) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
  }
  // expected-note @below {{the read}}
  %v = memref.load %own[%c0] : memref<64xf32>
  memref.store %v, %out[%c0] : memref<64xf32>
  comms.barrier %team grid
  comms.return
}

// -----

// And a store of memref writes.

comms.kernel @memref_store(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    %z = arith.constant 1.0 : f32
    // expected-error @below {{'memref.store' op writes [0, 1) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    memref.store %z, %at0[%c0] : memref<64xf32>
  }
  scf.if %r0 {
    // expected-note @below {{the read}}
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// And a copy does both, to all of the memory.

comms.kernel @memref_copy(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
  }
  // expected-note @below {{the read}}
  memref.copy %own, %out : memref<64xf32> to memref<64xf32>
  comms.barrier %team grid
  comms.return
}

// -----

// And so do those of vector.

comms.kernel @vector_load(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
  }
  // expected-note @below {{the read}}
  %v = vector.load %own[%c0] : memref<64xf32>, vector<16xf32>
  vector.store %v, %out[%c0] : memref<64xf32>, vector<16xf32>
  comms.barrier %team grid
  comms.return
}

// -----

// Blocks meet in their rank's own memory.

comms.kernel @local_blocks(%out: memref<64xf32>)
    attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %block = comms.block_id
  %b0 = arith.cmpi eq, %block, %c0 : index
  %b1 = arith.cmpi eq, %block, %c1 : index
  %sel2=arith.constant 0:index
  scf.if %b0 {
    // expected-note @below {{the write}}
    comms.tile_store %one, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  scf.if %b1 {
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'out' at rank 0 on rank 0 block 1 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %out[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c16] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Packets are not read as tiles.

comms.kernel @packet_and_tile(%box: !comms.window<16xi64>, %o2: memref<16xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %f = arith.index_cast %epoch : index to i32
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  scf.if %r1 {
    %p0 = comms.peer %box at %c0 of %team : !comms.window<16xi64> -> memref<16xi64>
    // expected-error @below {{'comms.packet_store' op writes [0, 16) of 'box' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.packet_store %one, %p0[%c0] flag %f : tensor<16xf32>, memref<16xi64>
  }
  scf.if %r0 {
    %o = comms.local %box : !comms.window<16xi64> -> memref<16xi64>
    // expected-note @below {{the read}}
    %t = comms.tile_load %o[%c0] : memref<16xi64> -> tensor<16xi64>
    comms.tile_store %t, %o2[%c0] : tensor<16xi64>, memref<16xi64>
    %pk = comms.packet_load %o[%c0] flag %f : memref<16xi64> -> tensor<16xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// A write whose place data decide is taken to be apart from other writes, and
// from no read: not even where another write has come since.

comms.kernel @scattered(%x: !comms.window<64xf32>, %s: !comms.signal<1>,
                        %places: memref<4xi64>)
    attributes {ranks = 3, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %want = arith.index_cast %epoch : index to i64
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at2 = comms.peer %x at %c2 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.index_switch %me
  case 0 {
    %place = memref.load %places[%c0] : memref<4xi64>
    %offset = arith.index_cast %place : i64 to index
    // expected-note @below {{the write}}
    comms.tile_store %one, %at2[%offset] : tensor<16xf32>, memref<64xf32>
    scf.yield
  }
  case 1 {
    comms.tile_store %one, %at2[%c0] : tensor<16xf32>, memref<64xf32>
    comms.signal set %s[%c0] value %want at %c2 of %team : !comms.signal<1>
    scf.yield
  }
  default {
    comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 2 on rank 2 block 0 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it}}
    %v = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
  }
  comms.barrier %team block
  comms.return
}
