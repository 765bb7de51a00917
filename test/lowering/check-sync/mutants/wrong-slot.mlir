// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Sent through slot 0, expected in slot 1.

comms.kernel @slot_1()
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
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  // expected-error @below {{deadlock: rank 0, block 0 waits for rank 3 to send slot 1 (launch 1)}}
  // expected-note @below {{rank 3 has sent slot 0 of this channel in this launch}}
  // expected-note @below {{rank 3, block 0 waits here, for rank 2 to send slot 1 (launch 1)}}
  // expected-note @below {{rank 1, block 0 waits here too, for rank 0 to send slot 1 (launch 1)}}
  // expected-note @below {{rank 2, block 0 waits here too, for rank 1 to send slot 1 (launch 1)}}
  // expected-note @below {{the source must send through the same slot and channel, from the same block, in the same launch}}
  %r = comms.recv %ch[%c1] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The same slot on both sides.

comms.kernel @slot_0()
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
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
