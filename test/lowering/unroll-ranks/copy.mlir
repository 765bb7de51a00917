// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-unroll-ranks))' | FileCheck %s

// A copy between views whose sizes differ is left to the check of bounds, which
// says what is wrong.

// CHECK-LABEL: comms.kernel @elsewhere
comms.kernel @elsewhere(%x: memref<16xi64>, %a: memref<32xi64>) attributes {ranks = 1, blocks = 1} {
  %d = memref.cast %x : memref<16xi64> to memref<?xi64>
  %e = memref.cast %a : memref<32xi64> to memref<?xi64>
  // CHECK: memref.copy %{{.*}}, %{{.*}} : memref<?xi64> to memref<?xi64>
  memref.copy %e, %d : memref<?xi64> to memref<?xi64>
  comms.return
}
