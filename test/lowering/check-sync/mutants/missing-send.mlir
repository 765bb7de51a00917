// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Rank 0 sends nothing; rank 1 receives from it.

comms.kernel @rank_0_sends_nothing()
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
  %silent = arith.cmpi ne, %me, %c0 : index
  scf.if %silent {
    comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  }
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  // expected-error @below {{deadlock: rank 1, block 0 waits for rank 0 to send slot 0 (launch 1)}}
  // expected-note @below {{the wait is cyclic: rank 1 block 0 -> rank 0 block 0 -> rank 1 block 0; let each side signal or send before it waits}}
  // expected-note @below {{the source must send through the same slot and channel, from the same block, in the same launch}}
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  // expected-note @below {{rank 0, block 0 waits here, for all 4 blocks of the barrier; 3 arrived (launch 1)}}
  // expected-note @below {{rank 2, block 0 and 1 more wait here as a result}}
  comms.barrier %world block
  comms.return
}

// -----

// All send.

comms.kernel @all_send()
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
