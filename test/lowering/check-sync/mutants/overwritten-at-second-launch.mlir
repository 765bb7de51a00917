// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A rank may store for the next launch while its left neighbor still reads.

comms.kernel @one_barrier(%w: !comms.window<64xf32>, %out: memref<64xf32>)
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
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @below {{'comms.tile_store' op writes [0, 64) of 'w' at rank 0 on rank 0 block 0 in launch 2, with no order between it and the read by rank 3 block 0 in launch 1}}
  // expected-note @below {{let the earlier launch end in a barrier or a signal that orders them, or alternate two buffers by comms.epoch}}
  comms.tile_store %tile, %here[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  %there = comms.peer %w at %right of %world : !comms.window<64xf32> -> memref<64xf32>
  // expected-note @below {{the read}}
  %got = comms.tile_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %got, %out[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// A second barrier ends the reads.

comms.kernel @two_barriers(%w: !comms.window<64xf32>, %out: memref<64xf32>)
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
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  comms.tile_store %tile, %here[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  %there = comms.peer %w at %right of %world : !comms.window<64xf32> -> memref<64xf32>
  %got = comms.tile_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %got, %out[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.return
}
