// RUN: comms-opt %s -split-input-file -verify-diagnostics -comms-assert-bounds

// Whatever no check can guard is not allowed in a kernel.

comms.kernel @pointer(%x: memref<8xf32>) {
  %zero = arith.constant 0 : i64
  // expected-error @+1 {{'llvm.inttoptr' op accesses of the LLVM dialect cannot be checked; use comms.tile_load}}
  %p = llvm.inttoptr %zero : i64 to !llvm.ptr
  comms.return
}

// -----

func.func private @abort()
comms.kernel @call() {
  // expected-error @+1 {{'func.call' op a kernel calls no functions: what they do cannot be checked; inline them first}}
  func.call @abort() : () -> ()
  comms.return
}

// -----

comms.kernel @assert(%b: i1) {
  // expected-error @+1 {{'cf.assert' op would terminate the process; a kernel ends with comms.return}}
  cf.assert %b, "no"
  comms.return
}

// -----

comms.kernel @free(%x: memref<8xf32>) {
  // expected-error @+1 {{'memref.dealloc' op accesses through it cannot be checked}}
  memref.dealloc %x : memref<8xf32>
  comms.return
}

// -----

comms.kernel @view(%x: memref<8xf32>, %i: index) {
  %c3 = arith.constant 3 : index
  // expected-error @+1 {{'memref.subview' op accesses through it cannot be checked; use a view with constant offsets}}
  %s = memref.subview %x[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
  %v = memref.load %s[%c3] : memref<4xf32, strided<[1], offset: ?>>
  comms.return
}

// -----

comms.kernel @recast(%x: memref<8xf32>) {
  // expected-error @+1 {{'memref.reinterpret_cast' op accesses through it cannot be checked}}
  %s = memref.reinterpret_cast %x to offset: [0], sizes: [800], strides: [1] : memref<8xf32> to memref<800xf32>
  comms.return
}

// -----

comms.kernel @larger(%x: memref<8xf32>) {
  %some = memref.cast %x : memref<8xf32> to memref<?xf32>
  // expected-error @+1 {{'memref.cast' op accesses through it cannot be checked}}
  %many = memref.cast %some : memref<?xf32> to memref<800xf32>
  comms.return
}

// -----

comms.kernel @gather(%x: memref<8xf32>, %i: index) {
  %rest = arith.constant dense<0.0> : vector<4xf32>
  %mask = arith.constant dense<true> : vector<4xi1>
  %at = arith.constant dense<[0, 2000000000, 1000, 100]> : vector<4xi32>
  // expected-error @+1 {{'vector.gather' op accesses through it cannot be checked}}
  %v = vector.gather %x[%i][%at], %mask, %rest : memref<8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  comms.return
}

// -----

comms.kernel @affine(%x: memref<8xf32>) {
  // expected-error @+1 {{'affine.load' op accesses through it cannot be checked}}
  %v = affine.load %x[0] : memref<8xf32>
  comms.return
}

// -----

// The end of the loop says nothing of its own.
comms.kernel @loop(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{'affine.for' op accesses through it cannot be checked; write scf.for}}
  affine.for %i = 0 to 8 {
    // expected-error @+1 {{'affine.load' op accesses through it cannot be checked; write memref.load or comms.tile_load}}
    %v = affine.load %x[%i] : memref<8xf32>
    // expected-error @+1 {{'affine.store' op accesses through it cannot be checked; write memref.store or comms.tile_store}}
    affine.store %v, %y[%i] : memref<8xf32>
  }
  comms.return
}

// -----

comms.kernel @allocates(%v: f32, %i: index) {
  // expected-error @+1 {{'memref.alloc' op accesses through it cannot be checked; memory of a block is comms.scratch}}
  %m = memref.alloc() : memref<8xf32>
  memref.store %v, %m[%i] : memref<8xf32>
  comms.return
}

// -----

comms.kernel @threads(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{'gpu.thread_id' op is not allowed in a kernel; a block computes with whole tiles and has no threads to number: write arithmetic on tensors of rank 1, comms.tile_load and comms.tile_store}}
  %i = gpu.thread_id x
  // expected-error @+1 {{'gpu.block_id' op is not allowed in a kernel; write comms.block_id}}
  %b = gpu.block_id x
  // expected-error @+1 {{'gpu.barrier' op is not allowed in a kernel; leave it out: what a block does is in order}}
  gpu.barrier
  %v = memref.load %x[%i] : memref<8xf32>
  memref.store %v, %y[%b] : memref<8xf32>
  comms.return
}

// -----

comms.kernel @registers(%x: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'nvvm.read.ptx.sreg.tid.x' op is not allowed in a kernel; a block computes with whole tiles}}
  %t = nvvm.read.ptx.sreg.tid.x : i32
  memref.store %t, %x[%c0] : memref<8xi32>
  comms.return
}

// -----

comms.kernel @vector(%x: memref<8xf32>) {
  %c5 = arith.constant 5 : index
  // expected-error @+1 {{'vector.load' op read of x out of bounds: offset 5, count 4, limit 8}}
  %v = vector.load %x[%c5] : memref<8xf32>, vector<4xf32>
  comms.return
}

// -----

// What is checked, or known: constant views, shapes that are forgotten, vectors.
comms.kernel @fine(%x: memref<8xf32>, %i: index) {
  %c3 = arith.constant 3 : index
  %s = memref.subview %x[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  %v = memref.load %s[%c3] : memref<4xf32, strided<[1], offset: 2>>
  %some = memref.cast %x : memref<8xf32> to memref<?xf32>
  memref.store %v, %some[%i] : memref<?xf32>
  %w = vector.load %x[%i] : memref<8xf32>, vector<4xf32>
  vector.store %w, %x[%i] : memref<8xf32>, vector<4xf32>
  comms.return
}
