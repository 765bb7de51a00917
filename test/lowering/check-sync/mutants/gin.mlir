// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A flush of one context leaves what went through another.

comms.kernel @flush_of_another_context(%xs: !comms.window<16xf32>, %w: !comms.window<16xf32>, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %x = comms.local %xs : !comms.window<16xf32> -> memref<16xf32>
  %other = arith.subi %c1, %me : index
  // expected-note @below {{the transfer}}
  comms.put %x[%c0] to %w[%c0] count %c16 at %other of %team gin <context_id = 1> : memref<16xf32>, !comms.window<16xf32>
  comms.flush %team gin <>
  // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'xs' at rank 0 on rank 0 block 0 in launch 1, which a transfer before it may still read}}
  // expected-note @below {{let comms.flush come between}}
  comms.tile_store %one, %x[%c0] : tensor<16xf32>, memref<16xf32>
  comms.signal inc %s[%c0] at %other of %team gin <context_id = 1> : !comms.signal<1>
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  comms.barrier %team block
  comms.return
}

// -----

// A fence and a relaxed signal order what went by load and store alone.

comms.kernel @fence_behind_gin(%xs: !comms.window<16xf32>, %w: !comms.window<16xf32>, %y: memref<16xf32>, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %x = comms.local %xs : !comms.window<16xf32> -> memref<16xf32>
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  // expected-note @below {{the write}}
  comms.put %x[%c0] to %w[%c0] count %c16 at %other of %team gin <> : memref<16xf32>, !comms.window<16xf32>
  comms.flush %team gin <>
  comms.fence release sys
  comms.signal inc %s[%c0] at %other of %team order relaxed : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  // expected-error @below {{reads [0, 16) of 'w' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0}}
  // expected-note @below {{order them}}
  // expected-note @below {{what goes through the adapter is ordered by a signal by gin}}
  %tile = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %tile, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.barrier %team block
  comms.return
}
