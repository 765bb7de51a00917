// RUN: comms-opt %s -comms-distribute-tiles="threads=64" -canonicalize -cse -split-input-file | FileCheck %s
// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file | FileCheck %s --check-prefix=ALONE

// One thread stores an element; all of them read what was there before, and wait for it to be read back.
// CHECK-LABEL: comms.kernel @one
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %x
// CHECK:         %[[SEEN:.*]] = memref.load %x[%i, %j]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[SEEN]]
// CHECK:         %[[ROW:.*]] = arith.muli %i, %c8
// CHECK:         %[[AT:.*]] = arith.addi %[[ROW]], %j
// CHECK:         gpu.barrier
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:         scf.if %[[FIRST]] {
// CHECK-NEXT:      memref.store %[[NEXT]], %[[FLAT]][%[[AT]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK:         memref.load %x[%i, %j]
// ALONE-LABEL: comms.kernel @one
// ALONE-NOT:     scf.if
comms.kernel @one(%x: memref<4x8xi32>, %y: memref<1xi32>, %i: index, %j: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %seen = memref.load %x[%i, %j] : memref<4x8xi32>
  %next = arith.addi %seen, %one : i32
  memref.store %next, %x[%i, %j] : memref<4x8xi32>
  %again = memref.load %x[%i, %j] : memref<4x8xi32>
  memref.store %again, %y[%c0] : memref<1xi32>
  comms.return
}

// -----

// What one thread alone stores comes after what all do, wherever it stands among them.
// CHECK-LABEL: comms.kernel @among
// CHECK:         vector.store
// CHECK:         vector.store
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %{{.*}}, %s[
// CHECK:         comms.return
// ALONE-LABEL: comms.kernel @among
// ALONE:         scf.for
// ALONE:           vector.store
// ALONE:           vector.store
// ALONE:         memref.store %{{.*}}, %s[
comms.kernel @among(%x: memref<256xf32>, %y: memref<256xf32>, %z: memref<256xf32>, %s: memref<1xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %a, %y[%c0] : tensor<256xf32>, memref<256xf32>
  memref.store %f, %s[%c0] : memref<1xf32>
  comms.tile_store %a, %z[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// But before what reads it, or writes over it.
// CHECK-LABEL: comms.kernel @read
// CHECK:         vector.store
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %{{.*}}, %y[
// CHECK:         vector.load
// CHECK:         vector.store
// ALONE-LABEL: comms.kernel @read
// ALONE:         scf.for
// ALONE:           vector.store
// ALONE:         memref.store %{{.*}}, %y[
// ALONE:         scf.for
// ALONE:           vector.store
comms.kernel @read(%x: memref<256xf32>, %y: memref<256xf32>, %z: memref<256xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %a, %y[%c0] : tensor<256xf32>, memref<256xf32>
  memref.store %f, %y[%c7] : memref<256xf32>
  %b = comms.tile_load %y[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %b, %z[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @over
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %{{.*}}, %y[
// CHECK:         vector.store
// ALONE-LABEL: comms.kernel @over
// ALONE:         memref.store %{{.*}}, %y[
// ALONE:         vector.store
comms.kernel @over(%x: memref<256xf32>, %y: memref<256xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  memref.store %f, %y[%c7] : memref<256xf32>
  comms.tile_store %a, %y[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// And before a signal that tells of it.
// CHECK-LABEL: comms.kernel @told
// CHECK:         scf.if
// CHECK-NEXT:      memref.store
// CHECK:         comms.signal
// ALONE-LABEL: comms.kernel @told
// ALONE:         memref.store
// ALONE:         comms.signal
comms.kernel @told(%x: memref<256xf32>, %w: !comms.window<256xf32>, %s: !comms.signal<1>, %f: f32) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %team = comms.team world
  %there = comms.peer %w at %c0 of %team : !comms.window<256xf32> -> memref<256xf32>
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %a, %x[%c0] : tensor<256xf32>, memref<256xf32>
  memref.store %f, %there[%c0] : memref<256xf32>
  comms.signal set %s[%c0] value %one at %c0 of %team : !comms.signal<1>
  comms.return
}
