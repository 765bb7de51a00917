// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Cells that do not show what they are taken to show.

// -----

// A second signal of rank 2 may be counted in place of that of rank 1.

comms.kernel @stand_in(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %i1 = arith.constant 1 : i64
  %i3 = arith.constant 3 : i64
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %r2 = arith.cmpi eq, %me, %c2 : index
  %r3 = arith.cmpi eq, %me, %c3 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
  }
  scf.if %r2 {
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
    %w2 = comms.wait_signal %s[%c1] ge %e : !comms.signal<8>
    // expected-note @below {{the signal that may run ahead}}
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
  }
  scf.if %r3 {
    comms.signal inc %s[%c1] at %c2 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    %c3e = arith.muli %e, %i3 : i64
    %wa = arith.subi %c3e, %i1 : i64
    // expected-error @below {{'comms.wait_signal' op counts signals on signal s[0] of rank 0 up to 2 in launch 1, but a signal of launch 1 by rank 2 block 0 may come before that of rank 1 block 0 and be counted in its place}}
    // expected-note @below {{give each sender a cell of its own, or keep senders from running ahead with a barrier}}
    %w = comms.wait_signal %s[%c0] ge %wa : !comms.signal<8>
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
    %wb = comms.wait_signal %s[%c0] ge %c3e : !comms.signal<8>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// A value that goes down again may be missed.

comms.kernel @set_lowered(%s: !comms.signal<8>)
    attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i0 = arith.constant 0 : i64
  %i3 = arith.constant 3 : i64
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %r2 = arith.cmpi eq, %me, %c2 : index
  scf.if %r1 {
    %five = arith.addi %e, %i3 : i64
    comms.signal set %s[%c0] value %five at %c0 of %team : !comms.signal<8>
    %w1 = comms.wait_signal %s[%c1] ge %e : !comms.signal<8>
    // expected-error @below {{'comms.signal' op sets signal s[0] of rank 0 to 0 on rank 1 block 0 in launch 1, before rank 0 block 0 has surely seen it be at least 4}}
    // expected-note @below {{let the value grow, or let the receiver answer before it is set again}}
    comms.signal set %s[%c0] value %i0 at %c0 of %team : !comms.signal<8>
  }
  scf.if %r2 {
    comms.signal inc %s[%c1] at %c1 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    %five2 = arith.addi %e, %i3 : i64
    // expected-note @below {{the wait}}
    %w0 = comms.wait_signal %s[%c0] ge %five2 : !comms.signal<8>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Cells hold no negative numbers.

comms.kernel @add_negative(%s: !comms.signal<8>)
    attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %r2 = arith.cmpi eq, %me, %c2 : index
  scf.if %r1 {
    comms.signal add %s[%c0] value %i2 at %c0 of %team : !comms.signal<8>
    %w1 = comms.wait_signal %s[%c1] ge %e : !comms.signal<8>
    %ng = arith.subi %i0, %i1 : i64
    // expected-error @below {{'comms.signal' op signals -1 on rank 1 block 0 in launch 1: cells hold no negative numbers}}
    // expected-note @below {{let values grow, and wait with `ge`}}
    comms.signal add %s[%c0] value %ng at %c0 of %team : !comms.signal<8>
  }
  scf.if %r2 {
    comms.signal inc %s[%c1] at %c1 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    %w = arith.addi %e, %i1 : i64
    %w0 = comms.wait_signal %s[%c0] ge %w : !comms.signal<8>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// The wait may be met by what rank 0 sets itself.

comms.kernel @set_by_two(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
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
    comms.signal set %s[%c0] value %e at %c0 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    comms.signal set %s[%c0] value %e at %c0 of %team : !comms.signal<8>
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

// Rank 2 may set it first.

comms.kernel @set_later(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %r2 = arith.cmpi eq, %me, %c2 : index
  %r3 = arith.cmpi eq, %me, %c3 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.signal set %s[%c0] value %e at %c0 of %team : !comms.signal<8>
  }
  scf.if %r2 {
    %w2 = comms.wait_signal %s[%c1] ge %e : !comms.signal<8>
    // expected-note @below {{set by rank 2 block 0}}
    comms.signal set %s[%c0] value %e at %c0 of %team : !comms.signal<8>
  }
  scf.if %r3 {
    comms.signal inc %s[%c1] at %c2 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    // expected-error @below {{'comms.wait_signal' op waits until signal s[0] of rank 0 is 1 in launch 1, which rank 1 block 0 and rank 2 block 0 set with no order between them: it does not show which has}}
    // expected-note @below {{give each sender a cell of its own}}
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Block 0 may take the first signal for the second.

comms.kernel @reset_other_block(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>)
    attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %i1 = arith.constant 1 : i64
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %block = comms.block_id
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %b0 = arith.cmpi eq, %block, %c0 : index
  %b1 = arith.cmpi eq, %block, %c1 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    scf.if %b0 {
      comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
      comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
      %w2 = comms.wait_signal %s[%c2] ge %e : !comms.signal<8>
      comms.tile_store %one, %at0[%c16] : tensor<16xf32>, memref<64xf32>
      comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
    }
  }
  scf.if %r0 {
    scf.if %b1 {
      %w1 = comms.wait_signal %s[%c0] ge %i1 : !comms.signal<8>
      // expected-error @below {{'comms.reset_signal' op resets signal s[0] of rank 0 in launch 1 with no order between it and what rank 0 block 0 does with the cell}}
      // expected-note @below {{let the block that waits reset the cell, or wait for `ge` a value that grows}}
      comms.reset_signal %s[%c0] : !comms.signal<8>
      comms.signal inc %s[%c2] at %c1 of %team : !comms.signal<8>
      comms.signal inc %s[%c3] at %c0 of %team : !comms.signal<8>
    }
    scf.if %b0 {
      %w5 = comms.wait_signal %s[%c4] ge %e : !comms.signal<8>
      // expected-note @below {{there}}
      %w3 = comms.wait_signal %s[%c0] ge %i1 : !comms.signal<8>
      %t = comms.tile_load %own[%c16] : memref<64xf32> -> tensor<16xf32>
      comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
      comms.reset_signal %s[%c0] : !comms.signal<8>
    }
  }
  scf.if %r1 {
    scf.if %b1 {
      comms.signal inc %s[%c4] at %c0 of %team : !comms.signal<8>
    }
  }
  comms.barrier %team grid
  comms.return
}

// -----

// Another block resets what is waited for.

comms.kernel @counter_reset(%x: !comms.window<64xf32>, %out: memref<64xf32>, %n: !comms.counter<1>)
    attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i1 = arith.constant 1 : i64
  %team = comms.team world
  %me = comms.rank %team
  %block = comms.block_id
  %b0 = arith.cmpi eq, %block, %c0 : index
  %b1 = arith.cmpi eq, %block, %c1 : index
  scf.if %b0 {
    comms.put %out[%c0] to %x[%c0] count %c16 at %me of %team counted %n[%c0] : !comms.counter<1> : memref<64xf32>, !comms.window<64xf32>
    // expected-note @below {{the wait}}
    %w = comms.wait_counter %n[%c0] ge %i1 : !comms.counter<1>
  }
  scf.if %b1 {
    // expected-error @below {{'comms.reset_counter' op resets counter n[0] of rank 0, which rank 0 block 0 may still be waiting for: the signal may be lost}}
    // expected-note @below {{let the block that waits reset the cell, or wait for `ge` a value that grows}}
    comms.reset_counter %n[%c0] : !comms.counter<1>
  }
  comms.barrier %team grid
  comms.return
}

// -----

// The first put may be counted behind the reset.

comms.kernel @counter_reset_same(%x: !comms.window<64xf32>, %out: memref<64xf32>, %n: !comms.counter<1>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %i1 = arith.constant 1 : i64
  %team = comms.team world
  %me = comms.rank %team
  // expected-note @below {{the put}}
  comms.put %out[%c0] to %x[%c0] count %c16 at %me of %team counted %n[%c0] : !comms.counter<1> : memref<64xf32>, !comms.window<64xf32>
  // expected-error @below {{'comms.reset_counter' op resets counter n[0] of rank 0 on rank 0 block 0 in launch 1, which may count a put of rank 0 block 0 later}}
  // expected-note @below {{wait with comms.wait_counter for all puts that it counts, then reset it}}
  comms.reset_counter %n[%c0] : !comms.counter<1>
  comms.put %out[%c0] to %x[%c16] count %c16 at %me of %team counted %n[%c0] : !comms.counter<1> : memref<64xf32>, !comms.window<64xf32>
  %w = comms.wait_counter %n[%c0] ge %i1 : !comms.counter<1>
  comms.barrier %team grid
  comms.return
}

// -----

// The flag was there before: the reader may take the first packet.

comms.kernel @flag_history(%x: !comms.window<64xf32>, %out: memref<64xf32>, %s: !comms.signal<8>, %box: !comms.window<16xi64>)
    attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %f = arith.index_cast %epoch : index to i32
  %r0 = arith.cmpi eq, %me, %c0 : index
  %r1 = arith.cmpi eq, %me, %c1 : index
  %r3 = arith.cmpi eq, %me, %c3 : index
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %at0 = comms.peer %x at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  scf.if %r1 {
    %p0 = comms.peer %box at %c0 of %team : !comms.window<16xi64> -> memref<16xi64>
    comms.packet_store %one, %p0[%c0] flag %f : tensor<16xf32>, memref<16xi64>
    %fa = arith.constant 1000 : i32
    %fb=arith.addi %f, %fa : i32
    comms.packet_store %one, %p0[%c0] flag %fb : tensor<16xf32>, memref<16xi64>
    comms.tile_store %one, %at0[%c0] : tensor<16xf32>, memref<64xf32>
    comms.fence release sys
    // expected-note @below {{the store that it should wait for}}
    comms.packet_store %one, %p0[%c0] flag %f : tensor<16xf32>, memref<16xi64>
  }
  scf.if %r3 {
    comms.signal inc %s[%c0] at %c0 of %team : !comms.signal<8>
  }
  scf.if %r0 {
    %w = comms.wait_signal %s[%c0] ge %e : !comms.signal<8>
    %o = comms.local %box : !comms.window<16xi64> -> memref<16xi64>
    // expected-error @below {{'comms.packet_load' op may be met on rank 0 block 0 in launch 1 by what was there before rank 1 block 0 overwrote it}}
    // expected-note @below {{let each store have a flag of its own, or let the reader wait until the old tile is gone}}
    %pk = comms.packet_load %o[%c0] flag %f : memref<16xi64> -> tensor<16xf32>
    comms.fence acquire sys
    %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %t, %out[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}
