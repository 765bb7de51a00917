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
