// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: element types differ.
comms.kernel @k(%data: !comms.window<64xf32>, %src16: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C1: the source has elements of 'f16', the window of 'f32'}}
  comms.engine_copy %src16[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<64xf16>, !comms.window<64xf32>
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
  comms.engine_copy %strided[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<32xf32, strided<[2]>>, !comms.window<64xf32>
  comms.return
}

// -----

// C2: the host cannot address a block's own memory.
comms.kernel @k(%data: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %s = comms.scratch : memref<64xf32>
  // expected-error @+1 {{C2: the source is memory of one block, which the host cannot address}}
  comms.engine_copy %s[%c0] to %data[%c0] count %c8 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C3: outside of the window.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C3: 8 elements from offset 60 leave the window}}
  comms.engine_copy %src[%c0] to %data[%c60] count %c8 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C4: the team has ranks 0 and 1.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // expected-error @+1 {{C4: peer 2 is not a rank of the team, which has 2}}
  comms.engine_copy %src[%c0] to %data[%c0] count %c8 at %c2 of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

// C5: a step of the host in a loop of the kernel.
comms.kernel @k(%data: !comms.window<64xf32>, %src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  comms.for_peers %team as %peer {
    // expected-error @+1 {{C5: the host starts a copy by the engine: place it at the top level of a kernel}}
    comms.engine_copy %src[%c0] to %data[%c0] count %c8 at %peer of %team : memref<64xf32>, !comms.window<64xf32>
  }
  comms.return
}
