// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Scopes that do not reach.

// -----

// A fence of scope gpu orders nothing for another rank.

comms.kernel @fence_gpu(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
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
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.fence release gpu
    comms.signal inc %s[%c0] at %c0 of %team order relaxed : !comms.signal<8>
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Nor does one of scope block.

comms.kernel @fence_block(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
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
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.fence release block
    comms.signal inc %s[%c0] at %c0 of %team order relaxed : !comms.signal<8>
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Nor does one behind the wait.

comms.kernel @acq_fence_gpu(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
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
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e order relaxed : !comms.signal<8>
    comms.fence acquire gpu
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// A wait of scope gpu does not hear other ranks.

comms.kernel @wait_gpu(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
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
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    // expected-note @below {{the signal}}
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    // expected-error @below {{'comms.wait_signal' op waits at scope gpu, but rank 1 block 0 updates signal s[0] of rank 0 from another rank}}
    // expected-note @below {{wait at scope sys}}
    %w = comms.wait_signal %s[%c0] ge %e scope gpu : !comms.signal<8>
    // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'x' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}
