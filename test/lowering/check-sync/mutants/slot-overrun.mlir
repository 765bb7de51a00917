// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A rank hears nothing from the one it sends to: it can be two launches ahead, and the slot's memory comes round again.

comms.kernel @runs_ahead()
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
  // expected-error @below {{'comms.send' op may overwrite slot 0 in launch 3 before rank 1 block 0 has received what rank 0 block 0 sent in launch 1}}
  // expected-note @below {{end the kernel with a comms.barrier over the team, or let the receiver answer}}
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  // expected-note @below {{the receive}}
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.return
}

// -----

// A barrier at the end of the launch holds it back.

comms.kernel @held_back()
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
