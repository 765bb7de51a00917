// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: an integer has no value to spare.
comms.kernel @k(%words: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{C1: poison is a NaN of f32, f16 or bf16; 'i32' has none to spare, use packets}}
  %t = comms.poison_load %words[%c0] : memref<64xi32> -> tensor<16xi32>
  comms.return
}

// -----

// C2: element types differ.
comms.kernel @k(%src16: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'f16'}}
  %t = comms.poison_load %src16[%c0] : memref<64xf16> -> tensor<16xf32>
  comms.return
}

// -----

// C3: strided memory.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %strided = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>>
  // expected-error @+1 {{C3: poison lies in contiguous memory of the default space}}
  %t = comms.poison_load %strided[%c0] : memref<32xf32, strided<[2]>> -> tensor<16xf32>
  comms.return
}

// -----

// C3: nobody reads a multicast view.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %mm = builtin.unrealized_conversion_cast to memref<64xf32, #comms.space<multimem>>
  // expected-error @+1 {{C3: poison lies in contiguous memory of the default space}}
  %t = comms.poison_load %mm[%c0] : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  comms.return
}

// -----

// C4: the tile has 16 elements.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c17 = arith.constant 17 : index
  // expected-error @+1 {{C4: 17 valid elements of a tile that has 16}}
  %t = comms.poison_load %src[%c0] valid %c17 : memref<64xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C5: outside of the memory.
comms.kernel @k(%src: memref<64xf32>) {
  %c49 = arith.constant 49 : index
  // expected-error @+1 {{C5: 16 elements from offset 49 leave the memory, which has 64 elements}}
  %t = comms.poison_load %src[%c49] : memref<64xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C6: a tile of unknown length.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{C6: the tile is 'tensor<?xf32>'; it needs a fixed number of elements}}
  %t = comms.poison_load %src[%c0] : memref<64xf32> -> tensor<?xf32>
  comms.return
}
