// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// LL would get away with it, a protocol that lowers the channel barrier to a barrier not.

comms.kernel @not_between()
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
  // expected-note @below {{the send, on rank 0 block 0}}
  comms.send %tile on %ch[%c0] to %right : tensor<64xf32>, !comms.channel<ll, 64xf32>
  // expected-error @below {{'comms.recv' op receives slot 0 on rank 1 block 0 with no comms.channel_barrier between it and the send}}
  // expected-note @below {{every block passes comms.channel_barrier between the sends of a round and its receives}}
  %r = comms.recv %ch[%c0] from %left : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The barrier between the sends and the receives of a round.

comms.kernel @between()
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
