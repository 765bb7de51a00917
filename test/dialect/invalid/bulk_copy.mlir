// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: elements without bits.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %b0 = builtin.unrealized_conversion_cast to memref<64xi0>
  // expected-error @+1 {{C1: elements are floats or integers of 8, 16, 32 or 64 bits, not 'i0'}}
  %t = comms.bulk_copy %b0[%c0] to %b0[%c0] count %c8 : memref<64xi0>, memref<64xi0>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C1: element types differ.
comms.kernel @k(%src16: memref<64xf16>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C1: the source has elements of 'f16', the destination of 'f32'}}
  %t = comms.bulk_copy %src16[%c0] to %any[%c0] count %c8 : memref<64xf16>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C2: strided memory.
comms.kernel @k(%any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %strided = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>>
  // expected-error @+1 {{C2: the source is 'memref<32xf32, strided<[2]>>', which is not contiguous}}
  %t = comms.bulk_copy %strided[%c0] to %any[%c0] count %c8 : memref<32xf32, strided<[2]>>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C2: a multicast view as destination.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C2: the destination is a multimem view}}
  %t = comms.bulk_copy %src[%c0] to %mm[%c0] count %c8 : memref<64xf32>, memref<64xf32, #comms.space<multimem>>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C3: outside of the source.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c36 = arith.constant 36 : index
  // expected-error @+1 {{C3: 32 elements from offset 36 leave the source}}
  %t = comms.bulk_copy %src[%c36] to %any[%c0] count %c32 : memref<64xf32>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C3: a negative count.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %m4 = arith.constant -4 : index
  // expected-error @+1 {{C3: a count of -4 elements is negative}}
  %t = comms.bulk_copy %src[%c0] to %any[%c0] count %m4 : memref<64xf32>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C4: 7 f32 are 28 bytes.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  // expected-error @+1 {{C4: 7 elements of 'f32' are not a multiple of 16 bytes}}
  %t = comms.bulk_copy %src[%c0] to %any[%c0] count %c7 : memref<64xf32>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C4: nor does a piece begin at 4 bytes.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C4: 1 elements of 'f32' are not a multiple of 16 bytes}}
  %t = comms.bulk_copy %src[%c0] to %any[%c1] count %c8 : memref<64xf32>, memref<?xf32>
  %done = comms.bulk_wait %t
  comms.return
}

// -----

// C5: nobody waits.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C5: this copy needs a comms.bulk_wait}}
  %t = comms.bulk_copy %src[%c0] to %any[%c0] count %c8 : memref<64xf32>, memref<?xf32>
  comms.return
}

// -----

// C5: to have begun is no evidence of having ended.
comms.kernel @k(%src: memref<64xf32>, %any: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C5: only comms.bulk_wait may use the token of a copy in flight}}
  %t = comms.bulk_copy %src[%c0] to %any[%c0] count %c8 : memref<64xf32>, memref<?xf32>
  %done = comms.bulk_wait %t
  %x = comms.tile_load %any[%c0] after %t : memref<?xf32> -> tensor<16xf32>
  comms.return
}
