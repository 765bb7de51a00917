// RUN: comms-opt %s -comms-instrument | FileCheck %s

// What peers may see of a product is recorded row by row.
// CHECK-LABEL: comms.kernel @product
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c16{{.*}} step
// CHECK: %[[ROW:.*]] = arith.addi %i, %[[I]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[ROW]], %c48
// CHECK: %[[AT:.*]] = arith.addi %[[BEFORE]], %c0
// CHECK: comms.record_access write %{{.*}}[%[[AT]]] count %c48
// CHECK: comms.contract
comms.kernel @product(%a: memref<32x24xbf16>, %b: memref<24x48xbf16>, %w: !comms.window<32x48xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c24 = arith.constant 24 : index
  %y = comms.local %w : !comms.window<32x48xf32> -> memref<32x48xf32>
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [16, 48] depth %c24
    : memref<32x24xbf16>, memref<24x48xbf16>, memref<32x48xf32>
  comms.return
}
