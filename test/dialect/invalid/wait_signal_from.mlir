// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the signal has four cells.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v1 = arith.constant 1 : i64
  %team = comms.team world
  // expected-error @+1 {{C1: there is no signal cell 4}}
  %t = comms.wait_signal_from %sig[%c4] ge %v1 from %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C2: no cell holds a negative number.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w1 = arith.constant -1 : i64
  %team = comms.team world
  // expected-error @+1 {{C2: the value -1 is negative}}
  %t = comms.wait_signal_from %sig[%c0] ge %w1 from %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C3: the team has ranks 0 and 1.
comms.kernel @k(%sig: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %team = comms.team world
  // expected-error @+1 {{C3: peer 2 is not a rank of the team, which has 2}}
  %t = comms.wait_signal_from %sig[%c0] ge %v1 from %c2 of %team : !comms.signal<4>
  comms.return
}

// -----

// C4: a wait has nothing to release.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %team = comms.team world
  // expected-error @+1 {{C4: the order is acquire or relaxed, not release}}
  %t = comms.wait_signal_from %sig[%c0] ge %v1 from %c1 of %team order release : !comms.signal<4>
  comms.return
}

// -----

// C5: a signal crosses blocks.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %team = comms.team world
  // expected-error @+1 {{C5: a signal crosses blocks; its scope is sys}}
  %t = comms.wait_signal_from %sig[%c0] ge %v1 from %c1 of %team scope cluster : !comms.signal<4>
  comms.return
}

// -----

// C6: another rank may be another GPU.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %team = comms.team world
  // expected-error @+1 {{C6: the peer may be another rank, which scope gpu does not reach}}
  %t = comms.wait_signal_from %sig[%c0] ge %v1 from %c1 of %team scope gpu : !comms.signal<4>
  comms.return
}
