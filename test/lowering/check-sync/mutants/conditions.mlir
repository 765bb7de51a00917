// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// What depends on data may happen.

// -----

// What an unknown condition guards may happen.

comms.kernel @unknown_if(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %d = memref.load %out[%c0] : memref<64xf32>
  %z = arith.constant 0.0 : f32
  %u = arith.cmpf ogt, %d, %z : f32
  scf.if %r1 {
    scf.if %u {
      // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
      // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
      comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    }
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

// An unknown choice may be any.

comms.kernel @switch_unknown(%x: !comms.window<64xf32>, %out: memref<64xf32>, %idx: memref<4xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %d6 = memref.load %idx[%c0] : memref<4xi64>
  %d = arith.index_cast %d6 : i64 to index
  scf.if %r1 {
    scf.index_switch %d
    case 0 {
      scf.yield }
      // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
      // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
      case 1 { comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
      scf.yield }
      default { scf.yield }
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

// A loop of unknown length may run.

comms.kernel @for_unknown(%x: !comms.window<64xf32>, %out: memref<64xf32>, %idx: memref<4xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %d6 = memref.load %idx[%c0] : memref<4xi64>
  %d = arith.index_cast %d6 : i64 to index
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    scf.for %i = %c0 to %d step %c1 { comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
  }
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

// So may one of `while`.

comms.kernel @while_unknown(%x: !comms.window<64xf32>, %out: memref<64xf32>, %idx: memref<4xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    scf.while : () -> () { %d = memref.load %idx[%c0] : memref<4xi64>
    %g = arith.cmpi slt, %d, %i0 : i64
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    scf.condition(%g) } do { comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    scf.yield }
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

// An unknown offset may be any.

comms.kernel @unknown_offset(%x: !comms.window<64xf32>, %out: memref<64xf32>, %idx: memref<4xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %d6 = memref.load %idx[%c0] : memref<4xi64>
  %d = arith.index_cast %d6 : i64 to index
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it}}
    comms.tile_store %one, %at0[%d] : tensor<16xf32>, memref<64xf32>
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

// An unknown number of elements may be all of the tile.

comms.kernel @unknown_valid(%x: !comms.window<64xf32>, %out: memref<64xf32>, %idx: memref<4xi64>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %d6 = memref.load %idx[%c0] : memref<4xi64>
  %d = arith.index_cast %d6 : i64 to index
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
    // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
    comms.tile_store %one, %at0[%c0] valid %d : tensor<16xf32>, memref<64xf32>
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

// Which memory it is has to be known.

comms.kernel @select_memref(%x: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %sel = arith.select %r1, %at0, %own : memref<64xf32>
  scf.if %r1 {
    // expected-error @below {{'comms.tile_store' op touches memory that is chosen while the kernel runs, which comms-check-sync does not follow: choose the offset, or branch around two ops}}
    comms.tile_store %one, %sel[%c0] : tensor<16xf32>, memref<64xf32>
  }
  scf.if %r0 {
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Counts come from data and may be two rows long: a check that comes later, of
// another number or of a part of the paths, says nothing.

comms.kernel @two_rows_of_data(%x: memref<16xf32>, %n: memref<1xi64>, %w: !comms.window<4x8xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %mine = arith.muli %me, %c8 : index
  %data = memref.load %n[%c0] : memref<1xi64>
  %some = arith.index_cast %data : i64 to index
  comms.check_bounds "two rows" %c0, %some in %c16
  %sure = arith.cmpi eq, %some, %c8 : index
  scf.if %sure {
    comms.check_bounds "a row" %c0, %some in %c8
  }
  // expected-error @below {{'comms.put' op writes [8, 16) of 'w' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{the write}}
  // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
  comms.put %x[%c0] to %w[%mine] count %some at %c0 of %team : memref<16xf32>, !comms.window<4x8xf32>
  comms.check_bounds "a row" %c0, %some in %c8
  comms.barrier %team block
  comms.return
}
