// RUN: comms-opt %s --verify-roundtrip | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @tiles
comms.kernel @tiles(%m: memref<8x64xbf16>, %d: memref<?xf32>, %s: !comms.signal<1>, %i: index, %v: i64, %f: f32) {
  %token = comms.wait_signal %s[%i] ge %v : !comms.signal<1>
  // CHECK: %[[A:.*]] = comms.tile_load %m[%i] : memref<8x64xbf16> -> tensor<64xbf16>
  %a = comms.tile_load %m[%i] : memref<8x64xbf16> -> tensor<64xbf16>
  // CHECK: comms.tile_load %m[%i] valid %i : memref<8x64xbf16> -> vector<16xbf16>
  %b = comms.tile_load %m[%i] valid %i : memref<8x64xbf16> -> vector<16xbf16>
  // CHECK: comms.tile_load %d[%i] after %{{.*}} : memref<?xf32> -> tensor<8xf32>
  %c = comms.tile_load %d[%i] after %token : memref<?xf32> -> tensor<8xf32>
  // CHECK: comms.tile_load %d[%i] valid %i after %{{.*}} {test.note} : memref<?xf32> -> tensor<8xf32>
  %e = comms.tile_load %d[%i] valid %i after %token {test.note} : memref<?xf32> -> tensor<8xf32>
  // CHECK: comms.tile_store %[[A]], %m[%i] : tensor<64xbf16>, memref<8x64xbf16>
  comms.tile_store %a, %m[%i] : tensor<64xbf16>, memref<8x64xbf16>
  // CHECK: comms.tile_store %{{.*}}, %m[%i] valid %i : vector<16xbf16>, memref<8x64xbf16>
  comms.tile_store %b, %m[%i] valid %i : vector<16xbf16>, memref<8x64xbf16>
  // CHECK: comms.row_reduce sum %{{.*}} : tensor<8xf32> -> tensor<1xf32>
  %r = comms.row_reduce sum %c : tensor<8xf32> -> tensor<1xf32>
  // CHECK: comms.broadcast_row %{{.*}} : tensor<1xf32> -> tensor<8xf32>
  %g = comms.broadcast_row %r : tensor<1xf32> -> tensor<8xf32>
  // CHECK: comms.splat %f : f32 -> tensor<?xf32>
  %p = comms.splat %f : f32 -> tensor<?xf32>
  // CHECK: comms.row_reduce max %{{.*}} : tensor<?xf32> -> tensor<1xf32>
  %q = comms.row_reduce max %p : tensor<?xf32> -> tensor<1xf32>
  // CHECK: comms.splat %f : f32 -> vector<4xf32>
  %t = comms.splat %f : f32 -> vector<4xf32>
  // CHECK: comms.math exp(%{{.*}}) : tensor<8xf32>
  %e1 = comms.math exp(%c) : tensor<8xf32>
  // CHECK: comms.math atan2(%f, %f) : f32
  %e2 = comms.math atan2(%f, %f) : f32
  // CHECK: %[[N:.*]] = comms.iota : tensor<64xi32>
  %n = comms.iota : tensor<64xi32>
  // CHECK: comms.row_reduce xor %[[N]] : tensor<64xi32> -> tensor<1xi32>
  %x = comms.row_reduce xor %n : tensor<64xi32> -> tensor<1xi32>
  // CHECK: comms.row_reduce and %[[N]]
  %y0 = comms.row_reduce and %n : tensor<64xi32> -> tensor<1xi32>
  // CHECK: comms.row_reduce or %[[N]]
  %y1 = comms.row_reduce or %n : tensor<64xi32> -> tensor<1xi32>
  // CHECK: comms.row_reduce prod %[[N]]
  %y2 = comms.row_reduce prod %n : tensor<64xi32> -> tensor<1xi32>
  // CHECK: comms.row_reduce min %[[N]]
  %y3 = comms.row_reduce min %n : tensor<64xi32> -> tensor<1xi32>
  // CHECK: comms.row_reduce avg %[[N]]
  %y4 = comms.row_reduce avg %n : tensor<64xi32> -> tensor<1xi32>
  comms.return
}

// CHECK-LABEL: comms.kernel @contract
comms.kernel @contract(%a: memref<8x64xbf16>, %b: memref<2x64x32xbf16>, %c: memref<8x32xf32>,
                       %p: memref<32x8xf8E4M3FN>, %q: memref<16x32xf8E5M2>, %r: memref<8x16xf16>, %i: index,
                       %ps: memref<1x8xf32>, %qs: memref<1x1xf32>) {
  // CHECK: comms.contract %a[%i, %i], %b[%i, %i] to %c[%i, %i] tile [8, 32] depth %i : memref<8x64xbf16>, memref<2x64x32xbf16>, memref<8x32xf32>
  comms.contract %a[%i, %i], %b[%i, %i] to %c[%i, %i] tile [8, 32] depth %i
    : memref<8x64xbf16>, memref<2x64x32xbf16>, memref<8x32xf32>
  // CHECK: comms.contract %a[%i, %i], %b[%i, %i] to %c[%i, %i] tile [8, 32] depth %i rows %i plus %a[%i, %i], %b[%i, %i] {accumulate} : memref<8x64xbf16>, memref<2x64x32xbf16>, memref<8x32xf32> plus memref<8x64xbf16>, memref<2x64x32xbf16>
  comms.contract %a[%i, %i], %b[%i, %i] to %c[%i, %i] tile [8, 32] depth %i rows %i plus %a[%i, %i], %b[%i, %i] {accumulate}
    : memref<8x64xbf16>, memref<2x64x32xbf16>, memref<8x32xf32> plus memref<8x64xbf16>, memref<2x64x32xbf16>
  // CHECK: tile [8, 16] depth %i rows %i columns %i {accumulate, transpose_lhs, transpose_rhs} : memref<32x8xf8E4M3FN>, memref<16x32xf8E5M2>, memref<8x16xf16>
  comms.contract %p[%i, %i], %q[%i, %i] to %r[%i, %i] tile [8, 16] depth %i rows %i columns %i
    {accumulate, transpose_lhs, transpose_rhs} : memref<32x8xf8E4M3FN>, memref<16x32xf8E5M2>, memref<8x16xf16>
  // CHECK: depth %i scaled by %{{.*}}, %{{.*}} plus %c[%i, %i] {transpose_lhs, transpose_rhs} : memref<32x8xf8E4M3FN>, memref<16x32xf8E5M2>, memref<8x16xf16> scaled by memref<1x8xf32>, memref<1x1xf32> plus memref<8x32xf32>
  comms.contract %p[%i, %i], %q[%i, %i] to %r[%i, %i] tile [8, 16] depth %i scaled by %ps, %qs plus %c[%i, %i]
    {transpose_lhs, transpose_rhs} : memref<32x8xf8E4M3FN>, memref<16x32xf8E5M2>, memref<8x16xf16>
    scaled by memref<1x8xf32>, memref<1x1xf32> plus memref<8x32xf32>
  comms.return
}
