// RUN: comms-opt %s -split-input-file -verify-diagnostics -comms-check-ops

comms.kernel @cast(%x: memref<16xi64>) {
  // expected-error @+1 {{'builtin.unrealized_conversion_cast' op is not allowed in a kernel; write arith.index_cast or another cast of arith}}
  %m = builtin.unrealized_conversion_cast %x : memref<16xi64> to memref<64xi64>
  comms.return
}

// -----

func.func private @abort()
comms.kernel @call() {
  // expected-error @+1 {{'func.call' op a kernel calls no functions}}
  func.call @abort() : () -> ()
  comms.return
}

// -----

comms.kernel @address(%x: memref<16xi64>) {
  // expected-error @+1 {{'memref.extract_aligned_pointer_as_index' op accesses through it cannot be checked}}
  %p = memref.extract_aligned_pointer_as_index %x : memref<16xi64> -> index
  comms.return
}

// -----

comms.kernel @unreachable() {
  // expected-error @+1 {{'ub.unreachable' op is not allowed in a kernel; write comms.return}}
  ub.unreachable
}

// -----

comms.kernel @poison() {
  // expected-error @+1 {{'ub.poison' op is not allowed in a kernel; write arith.constant}}
  %p = ub.poison : index
  comms.return
}

// -----

comms.kernel @parallel(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.parallel' op is not allowed in a kernel; write scf.for}}
  scf.parallel (%i) = (%c1) to (%n) step (%c1) {
  }
  comms.return
}

// -----

comms.kernel @assembly() {
  // expected-error @+1 {{'llvm.inline_asm' op accesses of the LLVM dialect cannot be checked}}
  llvm.inline_asm has_side_effects "trap;", "~{memory}" : () -> ()
  comms.return
}

// -----

comms.kernel @thread() {
  // expected-error @+1 {{'nvvm.barrier0' op is not allowed in a kernel; a block computes with whole tiles}}
  nvvm.barrier0
  comms.return
}

// -----

// The sizes of the memory are those that the kernel says.

comms.kernel @larger(%x: memref<16xi64>, %n: index) {
  %d = memref.cast %x : memref<16xi64> to memref<?xi64>
  // expected-error @+1 {{'memref.expand_shape' op accesses through it cannot be checked}}
  %m = memref.expand_shape %d [[0, 1]] output_shape [%n, 1] : memref<?xi64> into memref<?x1xi64>
  comms.return
}

// -----

comms.kernel @dimension(%x: memref<16xi64>, %i: index) {
  %d = memref.cast %x : memref<16xi64> to memref<?xi64>
  // expected-error @+1 {{'memref.dim' op accesses through it cannot be checked}}
  %n = memref.dim %d, %i : memref<?xi64>
  comms.return
}

// -----

comms.kernel @rows(%x: memref<16x4xi64>, %y: memref<2x4xi64>) {
  %v = memref.subview %x[0, 0] [2, 4] [8, 1] : memref<16x4xi64> to memref<2x4xi64, strided<[32, 1]>>
  // expected-error @+1 {{'memref.copy' op accesses through it cannot be checked; copy whole arrays}}
  memref.copy %v, %y : memref<2x4xi64, strided<[32, 1]>> to memref<2x4xi64>
  comms.return
}

// -----

// One element, sixteen times: a tile would read those behind it.

comms.kernel @still(%x: memref<16xi64>) {
  // expected-error @+1 {{'memref.subview' op accesses through it cannot be checked}}
  %v = memref.subview %x[0] [16] [0] : memref<16xi64> to memref<16xi64, strided<[0]>>
  comms.return
}

// -----

comms.kernel @element(%f: f32, %i: index) {
  %v = vector.broadcast %f : f32 to vector<4xf32>
  // expected-error @+1 {{'vector.extract' op takes an element by a position that is not constant or names none}}
  %e = vector.extract %v[%i] : f32 from vector<4xf32>
  comms.return
}

// -----

comms.kernel @lane(%i: index) {
  %v = vector.broadcast %i : index to vector<4xindex>
  // expected-error @+1 {{'vector.shuffle' op takes an element by a position that is not constant or names none}}
  %s = vector.shuffle %v, %v [0, -1] : vector<4xindex>, vector<4xindex>
  comms.return
}

// -----

comms.kernel @resource() {
  // expected-error @+1 {{'arith.constant' op is not an inline constant}}
  %c = arith.constant dense_resource<some> : tensor<4xf32>
  comms.return
}
{-#
  dialect_resources: { builtin: { some: "0x0400000000000000" } }
#-}

// -----

comms.kernel @pair(%i: index) {
  // expected-error @+1 {{'arith.mului_extended' op does not support index: write arith.index_cast to i64 before it}}
  %l, %h = arith.mului_extended %i, %i : index
  comms.return
}

// -----

comms.kernel @back(%n: index) {
  %c0 = arith.constant 0 : index
  %m1 = arith.constant -1 : index
  // expected-error @+1 {{'scf.for' op has a step of -1: a step is at least 1}}
  scf.for %i = %n to %c0 step %m1 {
  }
  comms.return
}

// -----

comms.kernel @far() {
  %c1 = arith.constant 1 : index
  %low = arith.constant -9223372036854775808 : index
  // expected-error @+1 {{'scf.for' op has bounds that are 2^63 or more apart}}
  scf.for %i = %low to %c1 step %c1 {
  }
  comms.return
}
