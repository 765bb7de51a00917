// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: element types differ.
comms.kernel @k(%data: !comms.window<64xf32>, %src16: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C1: the source has elements of 'f16', the window of 'f32'}}
  comms.put %src16[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<64xf16>, !comms.window<64xf32>
  comms.return
}

// -----

// C2: strided memory.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %strided = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>>
  // expected-error @+1 {{C2: the source is 'memref<32xf32, strided<[2]>>', which is not contiguous}}
  comms.put %strided[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<32xf32, strided<[2]>>, !comms.window<64xf32>
  comms.return
}

// -----

// C2: a multicast view as source.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C2: the source is a multimem view}}
  comms.put %mm[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<64xf32, #comms.space<multimem>>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: a negative count.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m1 = arith.constant -1 : index
  %team = comms.team world
  // expected-error @+1 {{C3: a count of -1 elements is negative}}
  comms.put %src[%c0] to %data[%c0] count %m1 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: a negative offset.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %m8 = arith.constant -8 : index
  %team = comms.team world
  // expected-error @+1 {{C3: offset -8 in the window is negative}}
  comms.put %src[%c0] to %data[%m8] count %c8 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: one element too many in the source.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c33 = arith.constant 33 : index
  %team = comms.team world
  // expected-error @+1 {{C3: 32 elements from offset 33 leave the source, which has 64 elements}}
  comms.put %src[%c33] to %data[%c0] count %c32 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: one element too many in the window.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c33 = arith.constant 33 : index
  %team = comms.team world
  // expected-error @+1 {{C3: 32 elements from offset 33 leave the window, which has 64 elements}}
  comms.put %src[%c0] to %data[%c33] count %c32 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: offset + count does not fit 64 bits.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %huge = arith.constant 9223372036854775807 : index
  // expected-error @+1 {{C3: 8 elements from offset 9223372036854775807 leave the window}}
  comms.put %src[%c0] to %data[%huge] count %c8 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: the count alone is too large, wherever it starts.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %team = comms.team world
  // expected-error @+1 {{C3: 65 elements leave the source}}
  comms.put %src[%i] to %data[%c0] count %c65 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: the offset alone is too large, whatever the count.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %team = comms.team world
  // expected-error @+1 {{C3: offset 65 leaves the source}}
  comms.put %src[%c65] to %data[%c0] count %i at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C4: the team has ranks 0 to 3.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C4: peer 4 is not a rank of the team, which has 4}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %c4 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C4: no team has a rank -1.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m1 = arith.constant -1 : index
  %team = comms.team world
  // expected-error @+1 {{C4: peer -1 is not a rank of the team}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %m1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C4: half of four ranks are two.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %pair = comms.team_split %team inner 2
  // expected-error @+1 {{C4: peer 2 is not a rank of the team, which has 2}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %c2 of %pair : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C4: every second of eight ranks are four.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) attributes {ranks = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %far = comms.team_split %team outer 2
  // expected-error @+1 {{C4: peer 4 is not a rank of the team, which has 4}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %c4 of %far : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C5: a counter without the index of a cell.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %cnt: !comms.counter<2>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C5: a counter comes with the index of its cell}}
  "comms.put"(%src, %c0, %data, %c0, %c8, %c1, %team, %cnt) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>}>
      : (memref<64xf32>, index, !comms.window<64xf32>, index, index, index, !comms.team, !comms.counter<2>) -> ()
  comms.return
}

// -----

// C6: the counter has two cells.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %cnt: !comms.counter<2>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C6: there is no counter cell 2; they are numbered from 0 and there are 2}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %c1 of %team counted %cnt[%c2] : !comms.counter<2> : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C7: contexts are numbered from 0.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %own = comms.local %data : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @+1 {{C7: GIN contexts are numbered from 0 and fit 31 bits; there is no context -1}}
  comms.put %own[%c0] to %data[%c0] count %c8 at %c1 of %team gin <context_id = -1> : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C8: the adapter reads memory at system scope.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %own = comms.local %data : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @+1 {{C8: a network adapter reads memory at system scope; write fence = sys, not gpu}}
  comms.put %own[%c0] to %data[%c0] count %c8 at %c1 of %team gin <fence = gpu> : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C9: the adapter reads registered memory alone.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C9: over GIN the source must be this rank's part of a window}}
  comms.put %src[%c0] to %data[%c0] count %c8 at %c1 of %team gin <> : memref<64xf32>, !comms.window<64xf32>
  comms.return
}
