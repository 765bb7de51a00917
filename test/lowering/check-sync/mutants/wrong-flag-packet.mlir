// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The reader waits for the flag of the next launch.

comms.kernel @flag_ahead(%p: !comms.window<128xi64>)
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
  %one = arith.constant 1 : i32
  %other = arith.addi %flag, %one : i32
  %two = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %parity = arith.remui %epoch, %two : index
  %at = arith.muli %parity, %c64 : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %p at %right of %world : !comms.window<128xi64> -> memref<128xi64>
  comms.packet_store %tile, %there[%at] flag %flag : tensor<64xf32>, memref<128xi64>
  %here = comms.local %p : !comms.window<128xi64> -> memref<128xi64>
  // expected-error @below {{deadlock: rank 0, block 0 waits for packets with flag 2 at p[64] (launch 1)}}
  // expected-note @below {{the flag there is 1}}
  // expected-note @below {{rank 1, block 0 waits here, for packets with flag 2 at p[64] (launch 1)}}
  // expected-note @below {{rank 2, block 0 waits here, for packets with flag 2 at p[64] (launch 1)}}
  // expected-note @below {{rank 3, block 0 waits here, for packets with flag 2 at p[64] (launch 1)}}
  // expected-note @below {{the store must go to this rank's part, at the same offset, with the same flag and at least as many elements}}
  %got = comms.packet_load %here[%at] flag %other : memref<128xi64> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The same flag on both sides.

comms.kernel @same_flag(%p: !comms.window<128xi64>)
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
  %one = arith.constant 1 : i32
  %other = arith.addi %flag, %one : i32
  %two = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %parity = arith.remui %epoch, %two : index
  %at = arith.muli %parity, %c64 : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %p at %right of %world : !comms.window<128xi64> -> memref<128xi64>
  comms.packet_store %tile, %there[%at] flag %flag : tensor<64xf32>, memref<128xi64>
  %here = comms.local %p : !comms.window<128xi64> -> memref<128xi64>
  %got = comms.packet_load %here[%at] flag %flag : memref<128xi64> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
