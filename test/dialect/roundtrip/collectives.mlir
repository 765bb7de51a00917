// RUN: comms-opt %s --verify-roundtrip | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @plain
comms.kernel @plain(%x: !comms.window<8x64xbf16>, %y: memref<8x64xbf16>, %one: memref<1x64xbf16>,
                    %all: memref<64x64xbf16>, %f: memref<8x64xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // CHECK: comms.all_reduce sum %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.all_reduce sum %t ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  // CHECK: comms.all_reduce avg %{{.*}} ins(%x, %y : !comms.window<8x64xbf16>, memref<8x64xbf16>) outs(%f, %f : memref<8x64xf32>, memref<8x64xf32>) {algorithm = "ring", protocol = "ll"}
  comms.all_reduce avg %t ins(%x, %y : !comms.window<8x64xbf16>, memref<8x64xbf16>) outs(%f, %f : memref<8x64xf32>, memref<8x64xf32>) {algorithm = "ring", protocol = "ll"}
  // CHECK: comms.reduce_scatter max %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%one : memref<1x64xbf16>)
  comms.reduce_scatter max %t ins(%x : !comms.window<8x64xbf16>) outs(%one : memref<1x64xbf16>)
  // CHECK: comms.all_gather %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%all : memref<64x64xbf16>)
  comms.all_gather %t ins(%x : !comms.window<8x64xbf16>) outs(%all : memref<64x64xbf16>)
  // CHECK: comms.all_to_all %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.all_to_all %t ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  // CHECK: comms.broadcast root 3 %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.broadcast root 3 %t ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  // CHECK: comms.reduce prod root 7 %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.reduce prod root 7 %t ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  // CHECK: comms.gather root 0 %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%all : memref<64x64xbf16>)
  comms.gather root 0 %t ins(%x : !comms.window<8x64xbf16>) outs(%all : memref<64x64xbf16>)
  // CHECK: comms.scatter root 1 %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%one : memref<1x64xbf16>)
  comms.scatter root 1 %t ins(%x : !comms.window<8x64xbf16>) outs(%one : memref<1x64xbf16>)
  // CHECK: comms.send_recv %{{.*}} from 1 to 2 ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>) {protocol = "pull"}
  comms.send_recv %t from 1 to 2 ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>) {protocol = "pull"}
  // CHECK: comms.role "compute" blocks 0 to 4 {
  // CHECK-NEXT: comms.all_reduce min
  comms.role "compute" blocks 0 to 4 {
    comms.all_reduce min %t ins(%x : !comms.window<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  }
  comms.return
}

// Arrays of rank 1 are cut by elements, and ranks may be unknown.
// CHECK-LABEL: comms.kernel @flat
comms.kernel @flat(%x: !comms.window<64xi32>, %part: memref<8xi32>, %rows: memref<8x3xi32>, %n: memref<8xi32>) {
  %t = comms.team world
  // CHECK: comms.reduce_scatter xor %{{.*}} ins(%x : !comms.window<64xi32>) outs(%part : memref<8xi32>) consume(%{{.*}}: tensor<64xi32>) {
  comms.reduce_scatter xor %t ins(%x : !comms.window<64xi32>) outs(%part : memref<8xi32>)
  consume(%w: tensor<64xi32>) {
    %r = arith.addi %w, %w : tensor<64xi32>
    comms.yield %r : tensor<64xi32>
  }
  // CHECK: comms.all_to_all_v %{{.*}} ins(%rows : memref<8x3xi32>) outs(%rows : memref<8x3xi32>) send_rows(%n : memref<8xi32>) recv_rows(%n : memref<8xi32>) max_rows 2 {algorithm = "one_shot"}
  comms.all_to_all_v %t ins(%rows : memref<8x3xi32>) outs(%rows : memref<8x3xi32>) send_rows(%n : memref<8xi32>) recv_rows(%n : memref<8xi32>) max_rows 2 {algorithm = "one_shot"}
  comms.return
}

// A sum, a residual, RMSNorm with a shared weight, fp8 with a scale a row.
// CHECK-LABEL: comms.kernel @fused
comms.kernel @fused(%x: !comms.window<8x64xbf16>, %residual: memref<8x64xbf16>, %weight: memref<64xf32>,
                    %y: memref<8x64xf8E4M3FN>, %scale: memref<8x1xf32>) attributes {ranks = 4 : i64} {
  %t = comms.team world
  // CHECK: comms.all_reduce sum %{{.*}} ins(%x : !comms.window<8x64xbf16>) outs(%y, %scale : memref<8x64xf8E4M3FN>, memref<8x1xf32>)
  // CHECK-SAME: args(%residual, %weight : memref<8x64xbf16>, memref<64xf32>) produce(%{{.*}}: tensor<64xbf16>) {
  // CHECK: } consume(%{{.*}}: tensor<64xf32>, %{{.*}}: tensor<64xbf16>, %{{.*}}: tensor<64xf32>) {
  // CHECK: comms.yield %{{.*}}, %{{.*}} : tensor<64xf8E4M3FN>, tensor<1xf32>
  // CHECK: } {algorithm = "two_shot"}
  comms.all_reduce sum %t ins(%x : !comms.window<8x64xbf16>) outs(%y, %scale : memref<8x64xf8E4M3FN>, memref<8x1xf32>)
      args(%residual, %weight : memref<8x64xbf16>, memref<64xf32>)
  produce(%a: tensor<64xbf16>) {
    %two = arith.constant dense<2.0> : tensor<64xbf16>
    %b = arith.mulf %a, %two : tensor<64xbf16>
    comms.yield %b : tensor<64xbf16>
  }
  consume(%sum: tensor<64xf32>, %r: tensor<64xbf16>, %w: tensor<64xf32>) {
    %wide = arith.extf %r : tensor<64xbf16> to tensor<64xf32>
    %h = arith.addf %sum, %wide : tensor<64xf32>
    %square = arith.mulf %h, %h : tensor<64xf32>
    %total = comms.row_reduce avg %square : tensor<64xf32> -> tensor<1xf32>
    %root = math.rsqrt %total : tensor<1xf32>
    %c0 = arith.constant 0 : index
    %scalar = tensor.extract %root[%c0] : tensor<1xf32>
    %all = comms.splat %scalar : f32 -> tensor<64xf32>
    %n = arith.mulf %h, %all : tensor<64xf32>
    %v = arith.mulf %n, %w : tensor<64xf32>
    %abs = math.absf %v : tensor<64xf32>
    %most = comms.row_reduce max %abs : tensor<64xf32> -> tensor<1xf32>
    %divisor = comms.broadcast_row %most : tensor<1xf32> -> tensor<64xf32>
    %q = arith.divf %v, %divisor : tensor<64xf32>
    %o = arith.truncf %q : tensor<64xf32> to tensor<64xf8E4M3FN>
    comms.yield %o, %most : tensor<64xf8E4M3FN>, tensor<1xf32>
  } {algorithm = "two_shot"}
  comms.return
}

// Dimensions that are fixed later.
// CHECK-LABEL: comms.kernel @dynamic
comms.kernel @dynamic(%x: !comms.window<?x?xbf16>, %y: memref<?x?xf32>, %g: memref<?xf32>) {
  %t = comms.team world
  // CHECK: comms.all_gather %{{.*}} ins(%x : !comms.window<?x?xbf16>) outs(%y : memref<?x?xf32>) args(%g : memref<?xf32>) consume(%{{.*}}: tensor<?xbf16>, %{{.*}}: tensor<?xf32>) {
  comms.all_gather %t ins(%x : !comms.window<?x?xbf16>) outs(%y : memref<?x?xf32>) args(%g : memref<?xf32>)
  consume(%w: tensor<?xbf16>, %v: tensor<?xf32>) {
    %e = arith.extf %w : tensor<?xbf16> to tensor<?xf32>
    %r = arith.mulf %e, %v : tensor<?xf32>
    comms.yield %r : tensor<?xf32>
  }
  comms.return
}
