// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the signal has four cells.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %team = comms.team world
  // expected-error @+1 {{C1: there is no signal cell 4}}
  comms.signal inc %sig[%c4] at %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C1: cells are numbered from 0.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c1 = arith.constant 1 : index
  %m1 = arith.constant -1 : index
  %team = comms.team world
  // expected-error @+1 {{C1: there is no signal cell -1}}
  comms.signal inc %sig[%m1] at %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C2: inc takes no value.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v3 = arith.constant 3 : i64
  %team = comms.team world
  // expected-error @+1 {{C2: inc adds one and takes no value}}
  comms.signal inc %sig[%c0] value %v3 at %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C2: add needs a value.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C2: add needs a value}}
  comms.signal add %sig[%c0] at %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C3: cells hold no negative numbers.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w3 = arith.constant -3 : i64
  %team = comms.team world
  // expected-error @+1 {{C3: the value -3 is negative; cells hold numbers from 0 to 2^63 - 1}}
  comms.signal set %sig[%c0] value %w3 at %c1 of %team : !comms.signal<4>
  comms.return
}

// -----

// C4: the team has ranks 0 and 1.
comms.kernel @k(%sig: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  // expected-error @+1 {{C4: peer 2 is not a rank of the team, which has 2}}
  comms.signal inc %sig[%c0] at %c2 of %team : !comms.signal<4>
  comms.return
}

// -----

// C5: a signal has nothing to acquire.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C5: the order is release or relaxed, not acquire}}
  comms.signal inc %sig[%c0] at %c1 of %team order acquire : !comms.signal<4>
  comms.return
}

// -----

// C6: a signal crosses blocks.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C6: a signal crosses blocks; its scope is sys, or gpu between blocks of one rank, not block}}
  comms.signal inc %sig[%c0] at %c1 of %team scope block : !comms.signal<4>
  comms.return
}

// -----

// C6: and clusters.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C6: a signal crosses blocks; its scope is sys, or gpu between blocks of one rank, not cluster}}
  comms.signal inc %sig[%c0] at %c1 of %team scope cluster : !comms.signal<4>
  comms.return
}

// -----

// C7: another rank may be another GPU.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C7: the peer may be another rank, which scope gpu does not reach}}
  comms.signal inc %sig[%c0] at %c1 of %team scope gpu : !comms.signal<4>
  comms.return
}

// -----

// C8: contexts are numbered from 0.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C8: GIN contexts are numbered from 0}}
  comms.signal inc %sig[%c0] at %c1 of %team gin <context_id = -1> : !comms.signal<4>
  comms.return
}

// -----

// C9: the adapter's fence has system scope.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  // expected-error @+1 {{C9: a network adapter reads memory at system scope; write fence = sys, not gpu}}
  comms.signal inc %sig[%c0] at %c1 of %team gin <fence = gpu> : !comms.signal<4>
  comms.return
}

// -----

// C10: GIN cannot set a cell.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v3 = arith.constant 3 : i64
  %team = comms.team world
  // expected-error @+1 {{C10: GIN has no signal that sets a cell; use inc or add}}
  comms.signal set %sig[%c0] value %v3 at %c1 of %team gin <> : !comms.signal<4>
  comms.return
}
