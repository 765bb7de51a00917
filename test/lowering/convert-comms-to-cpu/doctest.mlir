// The example of the pass's description.
// RUN: comms-opt %s --convert-comms-to-cpu --canonicalize --cse | FileCheck %s

// CHECK-DAG:   llvm.func @commsir_cpu_arrive(!llvm.ptr, i32, i64, i64, i64, i64) -> i64
// CHECK-DAG:   llvm.func @commsir_cpu_barrier_wait(!llvm.ptr, i32, i64)
// CHECK-LABEL: llvm.func @fill(%arg0: !llvm.ptr) attributes
// CHECK-SAME:    comms.args = [{bytes = 4 : i64, element = "f32", kind = "window", name = "x", shape = array<i64: 16>, written}]
// CHECK-SAME:    comms.ranks = 2 : i64
// CHECK-SAME:    comms.sites = {{\[\[}}"comms.barrier", "{{.*}}doctest.mlir:34:3", ""]]
// CHECK-DAG:   %[[ZERO:.*]] = llvm.mlir.constant(0 : i64) : i64
// CHECK-DAG:   %[[ONE:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK-DAG:   %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK-DAG:   %[[SITE:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG:   %[[ONES:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<16xf32>)
// CHECK:       %[[RANK:.*]] = llvm.load %arg0 : !llvm.ptr -> i64
// CHECK:       %[[ARGS_AT:.*]] = llvm.getelementptr %arg0[48]
// CHECK:       %[[ARGS:.*]] = llvm.load %[[ARGS_AT]] : !llvm.ptr -> !llvm.ptr
// CHECK:       %[[BASE:.*]] = llvm.load %[[ARGS]] : !llvm.ptr -> !llvm.ptr
// CHECK:       %[[STRIDE_AT:.*]] = llvm.getelementptr %[[ARGS]][8]
// CHECK:       %[[STRIDE:.*]] = llvm.load %[[STRIDE_AT]] : !llvm.ptr -> i64
// CHECK:       %[[BYTES:.*]] = llvm.mul %[[RANK]], %[[STRIDE]]
// CHECK:       %[[OWN:.*]] = llvm.getelementptr %[[BASE]][%[[BYTES]]]
// CHECK:       llvm.store %[[ONES]], %[[OWN]]
// CHECK:       %[[HANDLE:.*]] = llvm.call @commsir_cpu_arrive(%arg0, %[[SITE]], %[[ZERO]], %[[ONE]], %[[TWO]], %[[ZERO]])
// CHECK:       llvm.call @commsir_cpu_barrier_wait(%arg0, %[[SITE]], %[[HANDLE]])
// CHECK:       llvm.return

comms.kernel @fill(%x: !comms.window<16xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %ones = arith.constant dense<1.0> : vector<16xf32>
  %team = comms.team world
  %own = comms.local %x : !comms.window<16xf32> -> memref<16xf32>
  vector.store %ones, %own[%c0] : memref<16xf32>, vector<16xf32>
  comms.barrier %team block
  comms.return
}
