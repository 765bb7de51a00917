// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The last rank sends to rank 4 of 4.

comms.kernel @no_wrap()
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
  %ch = comms.channel 0 single over %world slots 2 : !comms.channel<ll, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  %to = arith.addi %me, %c1 : index
  // expected-error @below {{'comms.send' op addresses rank 4 of a team of 4, on rank 3 block 0 in launch 1}}
  // expected-note @below {{ranks of the team are 0 to 3: wrap around with arith.remui, or guard the op}}
  comms.send %tile on %ch[%c0] to %to : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Wraps around.

comms.kernel @wraps()
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
  %ch = comms.channel 0 single over %world slots 2 : !comms.channel<ll, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  %to = arith.addi %me, %c1 : index
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
