// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: plain memory.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{C1: the memory is a multimem view, which comms.multimem makes, not 'memref<64xf32>'}}
  %t = comms.multimem_load_reduce sum %src[%c0] : memref<64xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C2: element types differ.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'f16'}}
  %t = comms.multimem_load_reduce sum %mm16[%c0] : memref<64xf16, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C2: elements without bits.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm0 = builtin.unrealized_conversion_cast to memref<64xi0, #comms.space<multimem>>
  // expected-error @+1 {{C2: elements are floats or integers of 8, 16, 32 or 64 bits, not 'i0'}}
  %t = comms.multimem_load_reduce sum %mm0[%c0] : memref<64xi0, #comms.space<multimem>> -> tensor<16xi0>
  comms.return
}

// -----

// C3: strided memory.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mms = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>, #comms.space<multimem>>
  // expected-error @+1 {{C3: 'memref<32xf32, strided<[2]>, #comms.space<multimem>>' is not contiguous}}
  %t = comms.multimem_load_reduce sum %mms[%c0] : memref<32xf32, strided<[2]>, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C4: the tile has 16 elements.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c17 = arith.constant 17 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C4: 17 valid elements of a tile that has 16}}
  %t = comms.multimem_load_reduce sum %mm[%c0] valid %c17 : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C5: outside of the memory.
comms.kernel @k() {
  %c49 = arith.constant 49 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C5: 16 elements from offset 49 leave the memory, which has 64 elements}}
  %t = comms.multimem_load_reduce sum %mm[%c49] : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C6: an odd number of f16 does not fill 32-bit words.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C6: offset and number of elements fill whole words of 32 bits; elements of 'f16' come in groups of 2}}
  %t = comms.multimem_load_reduce sum %mm16[%c0] : memref<64xf16, #comms.space<multimem>> -> tensor<15xf16>
  comms.return
}

// -----

// C6: nor does an odd offset start one.
comms.kernel @k() {
  %c1 = arith.constant 1 : index
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C6: offset and number of elements fill whole words of 32 bits; elements of 'f16' come in groups of 2}}
  %t = comms.multimem_load_reduce sum %mm16[%c1] : memref<64xf16, #comms.space<multimem>> -> tensor<16xf16>
  comms.return
}

// -----

// C7: f32 can only be summed.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C7: the switch has no max of 'f32'}}
  %t = comms.multimem_load_reduce max %mm[%c0] : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C7: f16 has no bits to and.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm16 = builtin.unrealized_conversion_cast to memref<64xf16, #comms.space<multimem>>
  // expected-error @+1 {{C7: the switch has no and of 'f16'}}
  %t = comms.multimem_load_reduce and %mm16[%c0] : memref<64xf16, #comms.space<multimem>> -> tensor<16xf16>
  comms.return
}

// -----

// C7: the switch does not multiply.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mmi = builtin.unrealized_conversion_cast to memref<64xi32, #comms.space<multimem>>
  // expected-error @+1 {{C7: the switch has no prod of 'i32'}}
  %t = comms.multimem_load_reduce prod %mmi[%c0] : memref<64xi32, #comms.space<multimem>> -> tensor<16xi32>
  comms.return
}

// -----

// C8: a tile of unknown length.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C8: the tile is 'tensor<?xf32>'; it needs a fixed number of elements}}
  %t = comms.multimem_load_reduce sum %mm[%c0] : memref<64xf32, #comms.space<multimem>> -> tensor<?xf32>
  comms.return
}
