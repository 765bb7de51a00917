// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: a channel that nobody makes.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %loose = builtin.unrealized_conversion_cast to !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C1: the channel must be the result of a comms.channel}}
  %t = comms.recv %loose[%c0] from %c1 : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C2: the tile is too short.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C2: the tile has the type 'tensor<8xf32>', the channel carries 'tensor<16xf32>'}}
  %t = comms.recv %ch[%c0] from %c1 : !comms.channel<ll, 16xf32> -> tensor<8xf32>
  comms.return
}

// -----

// C3: slots are numbered from 0.
comms.kernel @k() {
  %c1 = arith.constant 1 : index
  %m1 = arith.constant -1 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C3: there is no slot -1}}
  %t = comms.recv %ch[%m1] from %c1 : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C4: the team has ranks 0 and 1.
comms.kernel @k() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C4: peer 2 is not a rank of the team, which has 2}}
  %t = comms.recv %ch[%c0] from %c2 : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C5: the tile has 16 elements.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 4 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C5: 17 valid elements of a tile that has 16}}
  %t = comms.recv %ch[%c0] from %c1 valid %c17 : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  comms.return
}
