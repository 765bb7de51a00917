// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The slot of a channel that is reused: the next round's tile may come before the receiver has read this one's.

comms.kernel @no_barrier_between_rounds() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %ch = comms.channel 0 pairwise over %world slots 1 reused : !comms.channel<push, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  // expected-note @below {{the send before it}}
  comms.send %tile on %ch[%c0] to %other : tensor<64xf32>, !comms.channel<push, 64xf32>
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  // expected-error @below {{'comms.recv' op receives slot 0 on rank 0 block 0 with no comms.channel_barrier between it and the send}}
  // expected-note @below {{every block passes comms.channel_barrier between the sends of a round and its receives}}
  %r = comms.recv %ch[%c0] from %other : !comms.channel<push, 64xf32> -> tensor<64xf32>
  // expected-note @below {{the send, on rank 1 block 0}}
  // expected-error @below {{'comms.send' op may overwrite slot 0 on rank 1 block 0 in launch 1 before rank 0 has received what was sent in round 0}}
  // expected-note @below {{end the round with a comms.barrier over the team behind its receives}}
  comms.send %tile on %ch[%c0] to %other : tensor<64xf32>, !comms.channel<push, 64xf32>
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  %s = comms.recv %ch[%c0] from %other : !comms.channel<push, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A tile that is received a round late is the next one.

comms.kernel @a_round_late() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %ch = comms.channel 0 pairwise over %world slots 1 reused : !comms.channel<push, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  // expected-note @below {{the send, on rank 1 block 0}}
  comms.send %tile on %ch[%c0] to %other : tensor<64xf32>, !comms.channel<push, 64xf32>
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  // expected-error @below {{'comms.recv' op receives slot 0 on rank 0 block 0 in round 1, but what is in it was sent in round 0}}
  // expected-note @below {{a tile of a reused channel is received in the round that it was sent in, before the next comms.channel_barrier}}
  %r = comms.recv %ch[%c0] from %other : !comms.channel<push, 64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A barrier at the end of each round.

comms.kernel @barrier_between_rounds() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %world = comms.team world
  %ch = comms.channel 0 multicast over %world slots 1 reused : !comms.channel<push, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  scf.for %round = %c0 to %c2 step %c1 {
    comms.send %tile on %ch[%c0] : tensor<64xf32>, !comms.channel<push, 64xf32>
    comms.channel_barrier %ch : !comms.channel<push, 64xf32>
    %r = comms.recv %ch[%c0] from %c0 : !comms.channel<push, 64xf32> -> tensor<64xf32>
    %s = comms.recv %ch[%c0] from %c1 : !comms.channel<push, 64xf32> -> tensor<64xf32>
    comms.barrier %world block
  }
  comms.return
}
