// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Nothing orders the read after the neighbor's store.

comms.kernel @reads_too_soon(%w: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %right of %world : !comms.window<64xf32> -> memref<64xf32>
  // expected-note @below {{the write}}
  comms.tile_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @below {{'comms.tile_load' op reads [0, 64) of 'w' at rank 1 on rank 1 block 0 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
  %got = comms.tile_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %got, %out[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A barrier in between.

comms.kernel @reads_after_barrier(%w: !comms.window<64xf32>, %out: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %right of %world : !comms.window<64xf32> -> memref<64xf32>
  comms.tile_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %got = comms.tile_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %got, %out[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.return
}
