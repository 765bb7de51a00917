// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: an f64 is not poisoned.
comms.kernel @k(%doubles: memref<64xf64>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C1: poison is a NaN of f32, f16 or bf16; 'f64' has none to spare}}
  comms.poison_fill %doubles[%c0] count %c8 : memref<64xf64>
  comms.return
}

// -----

// C2: strided memory.
comms.kernel @k() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %strided = builtin.unrealized_conversion_cast to memref<32xf32, strided<[2]>>
  // expected-error @+1 {{C2: poison lies in contiguous memory of the default space}}
  comms.poison_fill %strided[%c0] count %c8 : memref<32xf32, strided<[2]>>
  comms.return
}

// -----

// C3: a negative count.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %m1 = arith.constant -1 : index
  // expected-error @+1 {{C3: a count of -1 elements is negative}}
  comms.poison_fill %src[%c0] count %m1 : memref<64xf32>
  comms.return
}

// -----

// C3: outside of the memory.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c65 = arith.constant 65 : index
  // expected-error @+1 {{C3: 65 elements from offset 0 leave the memory, which has 64 elements}}
  comms.poison_fill %src[%c0] count %c65 : memref<64xf32>
  comms.return
}
