// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: plain memory.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{C1: the memory is a multimem view, which comms.multimem makes, not 'memref<64xf32>'}}
  comms.multimem_store %f32x16, %src[%c0] : tensor<16xf32>, memref<64xf32>
  comms.return
}

// -----

// C2: element types differ.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'f16'}}
  comms.multimem_store %f32x16, %mm16[%c0] : tensor<16xf32>, memref<64xf16, #comms.space<multimem>>
  comms.return
}

// -----

// C2: elements without bits.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm0 = builtin.unrealized_conversion_cast to memref<64xi0, #comms.space<multimem>>
  %t0 = builtin.unrealized_conversion_cast to tensor<16xi0>
  // expected-error @+1 {{C2: elements are floats or integers of 8, 16, 32 or 64 bits, not 'i0'}}
  comms.multimem_store %t0, %mm0[%c0] : tensor<16xi0>, memref<64xi0, #comms.space<multimem>>
  comms.return
}

// -----

// C3: strided memory.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mms = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>, #comms.space<multimem>>
  // expected-error @+1 {{C3: 'memref<32xf32, strided<[2]>, #comms.space<multimem>>' is not contiguous}}
  comms.multimem_store %f32x16, %mms[%c0] : tensor<16xf32>, memref<32xf32, strided<[2]>, #comms.space<multimem>>
  comms.return
}

// -----

// C4: the tile has 16 elements.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c17 = arith.constant 17 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C4: 17 valid elements of a tile that has 16}}
  comms.multimem_store %f32x16, %mm[%c0] valid %c17 : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  comms.return
}

// -----

// C5: outside of the memory.
comms.kernel @k() {
  %c49 = arith.constant 49 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C5: 16 elements from offset 49 leave the memory, which has 64 elements}}
  comms.multimem_store %f32x16, %mm[%c49] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  comms.return
}

// -----

// C6: an odd number of f16 does not fill 32-bit words.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %f16x15 = arith.constant dense<1.0> : tensor<15xf16>
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C6: offset and number of elements fill whole words of 32 bits; elements of 'f16' come in groups of 2}}
  comms.multimem_store %f16x15, %mm16[%c0] : tensor<15xf16>, memref<64xf16, #comms.space<multimem>>
  comms.return
}

// -----

// C6: nor does an odd offset start one.
comms.kernel @k() {
  %c1 = arith.constant 1 : index
  %f16x16 = arith.constant dense<1.0> : tensor<16xf16>
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C6: offset and number of elements fill whole words of 32 bits; elements of 'f16' come in groups of 2}}
  comms.multimem_store %f16x16, %mm16[%c1] : tensor<16xf16>, memref<64xf16, #comms.space<multimem>>
  comms.return
}

// -----

// C7: a tile of unknown length.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  %dyn = builtin.unrealized_conversion_cast to tensor<?xf32>
  // expected-error @+1 {{C7: the tile is 'tensor<?xf32>'; it needs a fixed number of elements}}
  comms.multimem_store %dyn, %mm[%c0] : tensor<?xf32>, memref<64xf32, #comms.space<multimem>>
  comms.return
}
