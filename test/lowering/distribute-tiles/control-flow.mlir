// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file | FileCheck %s

// A fold over a few peers disappears: the sum stays in registers.
// CHECK-LABEL: comms.kernel @fold
// CHECK-NOT:   comms.scratch
// CHECK:       scf.for {{.*}} = %c0 to %c32 step %c16 {
// CHECK-COUNT-3: vector.load
// CHECK:         vector.store
// CHECK:       } {comms.tile}
// CHECK-NOT:   scf.for
comms.kernel @fold(%w: !comms.window<32xi32>, %y: memref<32xi32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0> : tensor<32xi32>
  %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> (tensor<32xi32>) {
    %far = comms.peer %w at %p of %team : !comms.window<32xi32> -> memref<32xi32>
    %a = comms.tile_load %far[%c0] : memref<32xi32> -> tensor<32xi32>
    %s = arith.addi %acc, %a : tensor<32xi32>
    scf.yield %s : tensor<32xi32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<32xi32>, memref<32xi32>
  comms.return
}

// -----

// Of 20 peers, 8 at a time: two rounds and a rest of 4, over one buffer each.
// CHECK-LABEL: comms.kernel @long_fold
// CHECK:       scf.for %{{.*}} = %c0 to %c16 step %c8 {
// CHECK:         scf.for
// CHECK-COUNT-8: vector.load %{{.*}} : memref<32xi32>, vector<16xi32>
// CHECK:         } {comms.tile}
comms.kernel @long_fold(%w: !comms.window<32xi32>, %y: memref<32xi32>) attributes {ranks = 20 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant dense<0> : tensor<32xi32>
  %sum = scf.for %p = %c0 to %c20 step %c1 iter_args(%acc = %zero) -> (tensor<32xi32>) {
    %far = comms.peer %w at %p of %team : !comms.window<32xi32> -> memref<32xi32>
    %a = comms.tile_load %far[%c0] : memref<32xi32> -> tensor<32xi32>
    %s = arith.addi %acc, %a : tensor<32xi32>
    scf.yield %s : tensor<32xi32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<32xi32>, memref<32xi32>
  comms.return
}

// -----

// Tiles that exchange their places are both read before either is written.
// CHECK-LABEL: comms.kernel @swap
// CHECK:       scf.for %{{.*}} = %c0 to %n step %c1 {
// CHECK:         scf.for
// CHECK-NEXT:      %[[A:.*]] = vector.load %[[P:.*]][%[[I:.*]]]
// CHECK-NEXT:      %[[B:.*]] = vector.load %[[Q:.*]][%[[I]]]
// CHECK-NEXT:      vector.store %[[A]], %[[Q]][%[[I]]]
// CHECK-NEXT:      vector.store %[[B]], %[[P]][%[[I]]]
// CHECK-NEXT:    } {comms.tile}
comms.kernel @swap(%x: memref<64xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %a = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<32xi32>
  %b = comms.tile_load %x[%c32] : memref<64xi32> -> tensor<32xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a, %t = %b) -> (tensor<32xi32>, tensor<32xi32>) {
    scf.yield %t, %s : tensor<32xi32>, tensor<32xi32>
  }
  comms.tile_store %r#0, %x[%c0] : tensor<32xi32>, memref<64xi32>
  comms.tile_store %r#1, %x[%c32] : tensor<32xi32>, memref<64xi32>
  comms.return
}

// -----

// Both branches write one buffer; a tile of one is a scalar result.
// CHECK-LABEL: comms.kernel @branch
// CHECK:       %[[BUFFER:.*]] = comms.scratch : memref<32xi32>
// CHECK:       %{{.*}} = scf.if %c -> (i32) {
// CHECK:         vector.store %{{.*}}, %[[BUFFER]]
// CHECK:         scf.yield %{{.*}} : i32
// CHECK:       } else {
// CHECK:         vector.store %{{.*}}, %[[BUFFER]]
// CHECK:         scf.yield %{{.*}} : i32
comms.kernel @branch(%x: memref<32xi32>, %y: memref<32xi32>, %c: i1) {
  %c0 = arith.constant 0 : index
  %r:2 = scf.if %c -> (tensor<32xi32>, tensor<1xi32>) {
    %a = comms.tile_load %x[%c0] : memref<32xi32> -> tensor<32xi32>
    %s = comms.tile_load %x[%c0] : memref<32xi32> -> tensor<1xi32>
    scf.yield %a, %s : tensor<32xi32>, tensor<1xi32>
  } else {
    %a = arith.constant dense<7> : tensor<32xi32>
    %s = arith.constant dense<8> : tensor<1xi32>
    scf.yield %a, %s : tensor<32xi32>, tensor<1xi32>
  }
  %row = comms.broadcast_row %r#1 : tensor<1xi32> -> tensor<32xi32>
  %sum = arith.addi %r#0, %row : tensor<32xi32>
  comms.tile_store %sum, %y[%c0] : tensor<32xi32>, memref<32xi32>
  comms.return
}

// -----

// Buffers are used again: three tiles in a row need two, one for the lanes.
// CHECK-LABEL: comms.kernel @reuse
// CHECK-COUNT-2: comms.scratch
// CHECK-NOT:     comms.scratch
comms.kernel @reuse(%x: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  %r = comms.row_reduce sum %a : tensor<256xf32> -> tensor<1xf32>
  %rr = comms.broadcast_row %r : tensor<1xf32> -> tensor<256xf32>
  %b = arith.subf %a, %rr : tensor<256xf32>
  %s = comms.row_reduce max %b : tensor<256xf32> -> tensor<1xf32>
  %ss = comms.broadcast_row %s : tensor<1xf32> -> tensor<256xf32>
  %c = arith.subf %b, %ss : tensor<256xf32>
  comms.tile_store %c, %x[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// A loop that counts without a sign stays one.
// CHECK-LABEL: comms.kernel @unsigned
// CHECK:       scf.for unsigned %{{.*}} = %c1 to %n step %c1
comms.kernel @unsigned(%x: memref<32xf32>, %y: memref<32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = comms.tile_load %x[%c0] : memref<32xf32> -> tensor<32xf32>
  %r = scf.for unsigned %i = %c1 to %n step %c1 iter_args(%acc = %a) -> (tensor<32xf32>) {
    %s = arith.addf %acc, %acc : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  }
  comms.tile_store %r, %y[%c0] : tensor<32xf32>, memref<32xf32>
  comms.return
}
