// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Rank 0 does not receive what rank 3 sends to it.

comms.kernel @rank_0_is_deaf()
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
  // expected-note @below {{the channel}}
  %ch = comms.channel 0 single over %world slots 2 : !comms.channel<ll, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  // expected-error @below {{'comms.send' op sends slot 0 in launch 1 from rank 3 to rank 0, which never receives it}}
  // expected-note @below {{every send needs a comms.recv of the same slot, source and block at its destination}}
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %deaf = arith.cmpi ne, %me, %c0 : index
  scf.if %deaf {
    %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// All receive.

comms.kernel @all_receive()
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
