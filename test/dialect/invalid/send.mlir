// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: a channel that nobody makes.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %loose = builtin.unrealized_conversion_cast to !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C1: the channel must be the result of a comms.channel}}
  comms.send %f32x16 on %loose[%c0] to %c1 : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C2: the tile is too short.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %f32x8 = arith.constant dense<1.0> : tensor<8xf32>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C2: the tile has the type 'tensor<8xf32>', the channel carries 'tensor<16xf32>'}}
  comms.send %f32x8 on %ch[%c0] to %c1 : tensor<8xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C2: element types differ.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %f16x16 = arith.constant dense<1.0> : tensor<16xf16>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C2: the tile has the type 'tensor<16xf16>', the channel carries 'tensor<16xf32>'}}
  comms.send %f16x16 on %ch[%c0] to %c1 : tensor<16xf16>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C3: the channel has four slots.
comms.kernel @k() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C3: there is no slot 4; they are numbered from 0 and there are 4}}
  comms.send %f32x16 on %ch[%c4] to %c1 : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C4: a multicast has no peer.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mc = comms.channel 1 multicast over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C4: a multicast channel sends to every rank; leave out the peer}}
  comms.send %f32x16 on %mc[%c0] to %c1 : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C4: a pairwise send needs a peer.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C4: a pairwise channel sends to one rank; write to %peer}}
  comms.send %f32x16 on %ch[%c0] : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C4: so does a single.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %one = comms.channel 2 single over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C4: a single channel sends to one rank; write to %peer}}
  comms.send %f32x16 on %one[%c0] : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C5: the team has ranks 0 and 1.
comms.kernel @k() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C5: peer 2 is not a rank of the team, which has 2}}
  comms.send %f32x16 on %ch[%c0] to %c2 : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C6: the tile has 16 elements.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %team = comms.team world
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C6: 17 valid elements of a tile that has 16}}
  comms.send %f32x16 on %ch[%c0] to %c1 valid %c17 : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.return
}
