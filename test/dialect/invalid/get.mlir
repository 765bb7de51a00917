// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: element types differ.
comms.kernel @k(%data: !comms.window<64xf32>, %src16: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C1: the destination has elements of 'f16', the window of 'f32'}}
  comms.get %data[%c0] to %src16[%c0] count %c8 at %c1 of %team : !comms.window<64xf32>, memref<64xf16>
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
  // expected-error @+1 {{C2: the destination is 'memref<32xf32, strided<[2]>>', which is not contiguous}}
  comms.get %data[%c0] to %strided[%c0] count %c8 at %c1 of %team : !comms.window<64xf32>, memref<32xf32, strided<[2]>>
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
  // expected-error @+1 {{C2: the destination is a multimem view}}
  comms.get %data[%c0] to %mm[%c0] count %c8 at %c1 of %team : !comms.window<64xf32>, memref<64xf32, #comms.space<multimem>>
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
  comms.get %data[%c0] to %src[%c0] count %m1 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
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
  comms.get %data[%m8] to %src[%c0] count %c8 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
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
  // expected-error @+1 {{C3: 32 elements from offset 33 leave the destination, which has 64 elements}}
  comms.get %data[%c0] to %src[%c33] count %c32 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
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
  comms.get %data[%c33] to %src[%c0] count %c32 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
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
  comms.get %data[%huge] to %src[%c0] count %c8 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

// C3: the count alone is too large, wherever it starts.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %team = comms.team world
  // expected-error @+1 {{C3: 65 elements leave the destination}}
  comms.get %data[%c0] to %src[%i] count %c65 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

// C3: the offset alone is too large, whatever the count.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %team = comms.team world
  // expected-error @+1 {{C3: offset 65 leaves the destination}}
  comms.get %data[%c0] to %src[%c65] count %i at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
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
  comms.get %data[%c0] to %src[%c0] count %c8 at %c4 of %team : !comms.window<64xf32>, memref<64xf32>
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
  comms.get %data[%c0] to %src[%c0] count %c8 at %m1 of %team : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

// C5: contexts fit 31 bits.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %own = comms.local %data : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @+1 {{C5: GIN contexts are numbered from 0 and fit 31 bits; there is no context 2147483648}}
  comms.get %data[%c0] to %own[%c0] count %c8 at %c1 of %team gin <context_id = 2147483648> : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

// C6: the adapter writes memory at system scope.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %own = comms.local %data : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @+1 {{C6: a network adapter reads memory at system scope; write fence = sys, not block}}
  comms.get %data[%c0] to %own[%c0] count %c8 at %c1 of %team gin <fence = block> : !comms.window<64xf32>, memref<64xf32>
  comms.return
}

// -----

// C7: the adapter writes registered memory alone.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C7: over GIN the destination must be this rank's part of a window}}
  comms.get %data[%c0] to %src[%c0] count %c8 at %c1 of %team gin <> : !comms.window<64xf32>, memref<64xf32>
  comms.return
}
