// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: an integer has no value to spare.
comms.kernel @k(%words: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  %i32x16 = arith.constant dense<1> : tensor<16xi32>
  // expected-error @+1 {{C1: poison is a NaN of f32, f16 or bf16; 'i32' has none to spare, use packets}}
  comms.poison_store %i32x16, %words[%c0] : tensor<16xi32>, memref<64xi32>
  comms.return
}

// -----

// C2: element types differ.
comms.kernel @k(%src16: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'f16'}}
  comms.poison_store %f32x16, %src16[%c0] : tensor<16xf32>, memref<64xf16>
  comms.return
}

// -----

// C3: strided memory.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %strided = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>>
  // expected-error @+1 {{C3: poison lies in contiguous memory of the default space}}
  comms.poison_store %f32x16, %strided[%c0] : tensor<16xf32>, memref<32xf32, strided<[2]>>
  comms.return
}

// -----

// C3: nobody reads a multicast view.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C3: poison lies in contiguous memory of the default space}}
  comms.poison_store %f32x16, %mm[%c0] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  comms.return
}

// -----

// C4: the tile has 16 elements.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c17 = arith.constant 17 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{C4: 17 valid elements of a tile that has 16}}
  comms.poison_store %f32x16, %src[%c0] valid %c17 : tensor<16xf32>, memref<64xf32>
  comms.return
}

// -----

// C5: outside of the memory.
comms.kernel @k(%src: memref<64xf32>) {
  %c49 = arith.constant 49 : index
  %f32x16 = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{C5: 16 elements from offset 49 leave the memory, which has 64 elements}}
  comms.poison_store %f32x16, %src[%c49] : tensor<16xf32>, memref<64xf32>
  comms.return
}

// -----

// C6: a tile of unknown length.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %dyn = builtin.unrealized_conversion_cast to tensor<?xf32>
  // expected-error @+1 {{C6: the tile is 'tensor<?xf32>'; it needs a fixed number of elements}}
  comms.poison_store %dyn, %src[%c0] : tensor<?xf32>, memref<64xf32>
  comms.return
}
