// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @multimem
comms.kernel @multimem(%w: !comms.window<64xf32>, %h: !comms.window<4x64xbf16>, %k: !comms.window<64xi32>, %n: index) {
  %team = comms.team lsa
  %c0 = arith.constant 0 : index
  %all = comms.multimem %w of %team : !comms.window<64xf32> -> memref<64xf32, #comms.space<multimem>>
  %hall = comms.multimem %h of %team : !comms.window<4x64xbf16> -> memref<4x64xbf16, #comms.space<multimem>>
  %kall = comms.multimem %k of %team : !comms.window<64xi32> -> memref<64xi32, #comms.space<multimem>>
  // CHECK: %[[X:.*]] = comms.multimem_load_reduce sum %{{.*}}[%c0] : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  %x = comms.multimem_load_reduce sum %all[%c0] : memref<64xf32, #comms.space<multimem>> -> tensor<16xf32>
  // CHECK: %[[Y:.*]] = comms.multimem_load_reduce max %{{.*}}[%{{.*}}] valid %{{[^ ]*}} : memref<4x64xbf16, #comms.space<multimem>> -> tensor<16xbf16>
  %y = comms.multimem_load_reduce max %hall[%n] valid %n : memref<4x64xbf16, #comms.space<multimem>> -> tensor<16xbf16>
  // CHECK: %[[Z:.*]] = comms.multimem_load_reduce xor
  %z = comms.multimem_load_reduce xor %kall[%c0] : memref<64xi32, #comms.space<multimem>> -> vector<4xi32>
  // CHECK: comms.multimem_store %[[X]], %{{.*}}[%c0] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  comms.multimem_store %x, %all[%c0] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  // CHECK: comms.multimem_store %[[Y]], %{{.*}}[%{{.*}}] valid %{{[^ ]*}} : tensor<16xbf16>
  comms.multimem_store %y, %hall[%n] valid %n : tensor<16xbf16>, memref<4x64xbf16, #comms.space<multimem>>
  // CHECK: comms.multimem_reduce sum %[[X]], %{{.*}}[%c0] : tensor<16xf32>
  comms.multimem_reduce sum %x, %all[%c0] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  // CHECK: comms.multimem_reduce min %[[Y]], %{{.*}}[%{{.*}}] valid %{{[^ ]*}} : tensor<16xbf16>
  comms.multimem_reduce min %y, %hall[%n] valid %n : tensor<16xbf16>, memref<4x64xbf16, #comms.space<multimem>>
  comms.return
}

// CHECK-LABEL: comms.kernel @bulk
comms.kernel @bulk(%src: memref<64xf32>, %dst: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // CHECK: %[[A:.*]] = comms.bulk_copy %{{.*}}[%c0] to %{{.*}}[%c8] count %c8 : memref<64xf32>, memref<?xf32>
  %a = comms.bulk_copy %src[%c0] to %dst[%c8] count %c8 : memref<64xf32>, memref<?xf32>
  // CHECK: %[[B:.*]] = comms.bulk_copy
  %b = comms.bulk_copy %dst[%n] to %src[%n] count %n : memref<?xf32>, memref<64xf32>
  // CHECK: comms.bulk_wait %[[A]], %[[B]]
  %t = comms.bulk_wait %a, %b
  comms.return
}

// CHECK-LABEL: comms.kernel @engine
comms.kernel @engine(%src: memref<64xf32>, %w: !comms.window<64xf32>, %p: index) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // CHECK: comms.engine_copy %{{.*}}[%c0] to %{{.*}}[%c8] count %c8 at %{{.*}} of %{{[^ ]*}} : memref<64xf32>, <64xf32>
  comms.engine_copy %src[%c0] to %w[%c8] count %c8 at %p of %team : memref<64xf32>, !comms.window<64xf32>
  comms.return
}
