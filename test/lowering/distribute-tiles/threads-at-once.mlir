// RUN: comms-opt %s -comms-distribute-tiles="threads=64" -canonicalize -cse -split-input-file | FileCheck %s
// RUN: comms-opt %s -pass-pipeline="builtin.module(comms-to-nvvm{ranks=1 blocks=1 threads=64 chip=sm_80})" -split-input-file | FileCheck %s --check-prefix=NVVM

// Rows that a warp combines in one instruction for all lanes: integers, and of floats the greatest or the least.

// The least of halves: a NaN, which has to win, is less than all numbers on its way, and canonical behind it.
// CHECK-LABEL: comms.kernel @least
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 0x7E00 : f16
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant -2147483648 : i32
// CHECK:         %[[CANONICAL:.*]] = arith.select %{{.*}}, %[[NAN]], %{{.*}} : f16
// CHECK:         %[[HALF:.*]] = arith.bitcast %[[CANONICAL]] : f16 to i16
// CHECK:         %[[BITS:.*]] = arith.extsi %[[HALF]] : i16 to i32
// CHECK:         %[[SIGN:.*]] = arith.shrsi %[[BITS]], %c31_i32
// CHECK:         %[[OTHERS:.*]] = arith.andi %[[SIGN]], %c32767_i32
// CHECK:         %[[ORDERED:.*]] = arith.xori %[[BITS]], %[[OTHERS]]
// CHECK:         %[[IS:.*]] = arith.cmpf uno, %[[CANONICAL]], %[[CANONICAL]]
// CHECK:         %[[WORD:.*]] = arith.select %[[IS]], %[[LEAST]], %[[ORDERED]]
// CHECK:         gpu.subgroup_reduce minsi %[[WORD]] uniform : (i32) -> i32
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.barrier
// Two warps' values: every thread takes both.
// CHECK-NOT:     {{gpu.shuffle|gpu.subgroup}}
// CHECK:         %[[ALL:.*]] = arith.minsi
// CHECK:         %[[BACK:.*]] = arith.bitcast %{{.*}} : i16 to f16
// CHECK:         %[[WAS:.*]] = arith.cmpi eq, %[[ALL]], %[[LEAST]]
// CHECK:         arith.select %[[WAS]], %[[NAN]], %[[BACK]] : f16
// NVVM-LABEL: llvm.func @least
// NVVM:         nvvm.redux.sync min %{{.*}}, %{{.*}} : i32 -> i32
comms.kernel @least(%x: memref<512xf16>, %y: memref<1xf16>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<512xf16> -> tensor<512xf16>
  %s = comms.row_reduce min %t : tensor<512xf16> -> tensor<1xf16>
  comms.tile_store %s, %y[%c0] : tensor<1xf16>, memref<1xf16>
  comms.return
}

// -----

// A sum of bytes wraps when it is a byte again.
// CHECK-LABEL: comms.kernel @bytes
// CHECK:         arith.extsi %{{.*}} : i8 to i32
// CHECK:         gpu.subgroup_reduce add %{{.*}} uniform : (i32) -> i32
// CHECK-NOT:     gpu.shuffle
// CHECK:         arith.trunci %{{.*}} : i32 to i8
// NVVM-LABEL: llvm.func @bytes
// NVVM:         nvvm.redux.sync add
comms.kernel @bytes(%x: memref<1024xi8>, %y: memref<1xi8>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<1024xi8> -> tensor<1024xi8>
  %s = comms.row_reduce sum %t : tensor<1024xi8> -> tensor<1xi8>
  comms.tile_store %s, %y[%c0] : tensor<1xi8>, memref<1xi8>
  comms.return
}

// -----

// No instruction adds or multiplies floats of all lanes, multiplies integers, or takes 64 bits.
// CHECK-LABEL: comms.kernel @by_shuffles
// CHECK-NOT:     gpu.subgroup_reduce
// NVVM-LABEL: llvm.func @by_shuffles
// NVVM-NOT:     nvvm.redux
comms.kernel @by_shuffles(%x: memref<512xf32>, %i: memref<512xi32>, %l: memref<512xi64>, %y: memref<2xf32>, %j: memref<1xi32>, %k: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = comms.tile_load %x[%c0] : memref<512xf32> -> tensor<512xf32>
  %s = comms.row_reduce sum %t : tensor<512xf32> -> tensor<1xf32>
  %p = comms.row_reduce prod %t : tensor<512xf32> -> tensor<1xf32>
  %u = comms.tile_load %i[%c0] : memref<512xi32> -> tensor<512xi32>
  %q = comms.row_reduce prod %u : tensor<512xi32> -> tensor<1xi32>
  %v = comms.tile_load %l[%c0] : memref<512xi64> -> tensor<512xi64>
  %m = comms.row_reduce max %v : tensor<512xi64> -> tensor<1xi64>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<2xf32>
  comms.tile_store %p, %y[%c1] : tensor<1xf32>, memref<2xf32>
  comms.tile_store %q, %j[%c0] : tensor<1xi32>, memref<1xi32>
  comms.tile_store %m, %k[%c0] : tensor<1xi64>, memref<1xi64>
  comms.return
}
