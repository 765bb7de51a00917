// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The same flag in every launch: old packets look like new ones.

comms.kernel @always_7(%p: !comms.window<128xi64>)
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
  %epoch = comms.epoch
  %flag = arith.constant 7 : i32
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %p at %right of %world : !comms.window<128xi64> -> memref<128xi64>
  // expected-error @below {{'comms.packet_store' op writes flag 7 to [0, 64) of 'p' at rank 1 on rank 0 block 0 in launch 2, where packets of launch 1 have that flag already: a reader cannot tell them apart}}
  // expected-note @below {{the earlier store}}
  // expected-note @below {{let the flag grow with comms.epoch}}
  comms.packet_store %tile, %there[%c0] flag %flag : tensor<64xf32>, memref<128xi64>
  %here = comms.local %p : !comms.window<128xi64> -> memref<128xi64>
  %got = comms.packet_load %here[%c0] flag %flag : memref<128xi64> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The flag grows with the launch.

comms.kernel @epoch(%p: !comms.window<128xi64>)
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
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %p at %right of %world : !comms.window<128xi64> -> memref<128xi64>
  comms.packet_store %tile, %there[%c0] flag %flag : tensor<64xf32>, memref<128xi64>
  %here = comms.local %p : !comms.window<128xi64> -> memref<128xi64>
  %got = comms.packet_load %here[%c0] flag %flag : memref<128xi64> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
