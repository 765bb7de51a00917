// The example of the pass's description.
// RUN: comms-opt %s -comms-check-expansion -verify-diagnostics | FileCheck %s

// expected-remark @below {{its expansion computes what its collectives say}}
comms.kernel @sum(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  comms.return
}

// It only judges.
// CHECK: comms.kernel @sum
// CHECK: comms.all_reduce sum
// CHECK-NOT: comms.kernel
