// RUN: comms-opt %s -split-input-file -verify-diagnostics

// Verifiers of one-sided operations, barriers, copies and channels meet IR that
// no parser of theirs made: values that define themselves, definitions without
// their attributes, numbers at the ends of their types.

// A wait for an arrival that is itself.
comms.kernel @k() {
  // expected-error @+1 {{C1: the token must be the result of a comms.barrier_arrive}}
  %t = "comms.barrier_wait"(%t) : (!comms.token) -> !comms.token
  comms.return
}

// -----

// A wait for copies that is one of them.
comms.kernel @k() {
  // expected-error @+1 {{C2: each token must be the result of a comms.bulk_copy}}
  %t = "comms.bulk_wait"(%t) : (!comms.token) -> !comms.token
  comms.return
}

// -----

// The team of the peer is a split of itself: its size is unknown, not a loop
// without end. The first to complain is the split.
comms.kernel @k(%s: !comms.signal<1>, %i: index, %p: index) {
  // expected-error @+2 {{operand #0 does not dominate this use}}
  // expected-note @+1 {{operand defined here (op in the same block)}}
  %team = "comms.team_split"(%team) <{kind = #comms<split_kind outer>, factor = 2 : i64}> : (!comms.team) -> !comms.team
  %c1 = arith.constant 1 : index
  comms.signal inc %s[%i] at %c1 of %team : !comms.signal<1>
  comms.return
}

// -----

// The team follows its user, and has no kind.
comms.kernel @k(%s: !comms.signal<1>, %i: index) attributes {ranks = 2 : i64} {
  %c1 = arith.constant 1 : index
  "comms.signal"(%s, %i, %c1, %team) <{kind = #comms<signal_kind inc>}> : (!comms.signal<1>, index, index, !comms.team) -> ()
  // expected-error @+1 {{requires attribute 'kind'}}
  %team = "comms.team"() : () -> !comms.team
  comms.return
}

// -----

// The index follows its user, and is a constant without a value.
comms.kernel @k(%s: !comms.signal<1>) {
  "comms.reset_signal"(%s, %i) : (!comms.signal<1>, index) -> ()
  // expected-error @+1 {{requires attribute 'value'}}
  %i = "arith.constant"() : () -> index
  comms.return
}

// -----

// The channel follows its user, and has neither pattern nor slots.
comms.kernel @k(%tile: index) {
  %team = comms.team world
  // expected-error @+1 {{C1: the channel must be the result of a comms.channel}}
  %t = "comms.recv"(%c, %tile, %tile) : (!comms.channel<ll, 16xf32>, index, index) -> tensor<16xf32>
  %c = "comms.channel"(%team) : (!comms.team) -> !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// A wait that comes before its arrival.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{operand #0 does not dominate this use}}
  %done = "comms.barrier_wait"(%t) : (!comms.token) -> !comms.token
  // expected-note @+1 {{operand defined here (op in the same block)}}
  %t = comms.barrier_arrive %team block
  comms.return
}

// -----

// A team larger than 64 bits of ranks: factors that overflow say nothing.
comms.kernel @k(%s: !comms.signal<1>, %i: index) {
  %team = comms.team world
  %half = comms.team_split %team outer 4611686018427387904
  %none = comms.team_split %half outer 4611686018427387904
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{C1: there is no signal cell 9223372036854775807}}
  comms.signal inc %s[%huge] at %c1 of %none : !comms.signal<1>
  %huge = arith.constant 9223372036854775807 : index
  comms.return
}

// -----

// Memory whose number of elements does not fit 64 bits has no known limit.
func.func @k(%src: memref<4294967296x4294967296x4294967296xf32>, %d: !comms.window<64xf32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %huge = arith.constant 9223372036854775807 : index
  // expected-error @+1 {{C3: 9223372036854775807 elements from offset 0 leave the window}}
  comms.put %src[%huge] to %d[%c0] count %huge at %c0 of %team : memref<4294967296x4294967296x4294967296xf32>, !comms.window<64xf32>
  return
}

// -----

// Memory without elements.
comms.kernel @k(%src: memref<0xf32>) {
  %c0 = arith.constant 0 : index
  comms.poison_fill %src[%c0] count %c0 : memref<0xf32>
  // expected-error @+1 {{C5: 1 elements from offset 0 leave the memory, which has 0 elements}}
  %t = comms.poison_load %src[%c0] : memref<0xf32> -> tensor<1xf32>
  comms.return
}

// -----

// A smallest number, whose negation does not exist.
comms.kernel @k(%src: memref<64xf32>, %dst: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %low = arith.constant -9223372036854775808 : index
  // expected-error @+1 {{C3: a count of -9223372036854775808 elements is negative}}
  %t = comms.bulk_copy %src[%c0] to %dst[%c0] count %low : memref<64xf32>, memref<64xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// An operation outside of any kernel.
func.func @f(%s: !comms.signal<4>, %i: index, %p: index) {
  %team = comms.team world
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{C1: there is no signal cell 4}}
  comms.signal inc %s[%c4] at %p of %team : !comms.signal<4>
  return
}
