// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Two tiles of one launch in one slot.

comms.kernel @same_slot()
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
  // expected-note @below {{the first send}}
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  // expected-error @below {{'comms.send' op sends through slot 0 on rank 0 block 0 in launch 1, which already carries what rank 0 block 0 sent}}
  // expected-note @below {{a slot carries at most one tile a launch for each source and destination: number slots by tile}}
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %r0 = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  %r1 = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A slot for each tile.

comms.kernel @two_slots()
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
  comms.send %tile on %ch[%c1] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 64xf32>
  %r0 = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  %r1 = comms.recv %ch[%c1] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
