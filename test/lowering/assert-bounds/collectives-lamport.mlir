// RUN: comms-opt %s -comms-expand-collectives="protocol=lamport" -canonicalize -cse -comms-lower-channels -comms-eliminate-barriers -canonicalize -cse -comms-assert-bounds | FileCheck %s

// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier

// CHECK: comms.kernel @one_shot(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @one_shot(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>) {algorithm = "one_shot"}
  comms.return
}
// CHECK: comms.kernel @two_shot(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @two_shot(%x: memref<10000xbf16>, %y: memref<10000xbf16>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<10000xbf16>) outs(%y : memref<10000xbf16>) {algorithm = "two_shot"}
  comms.return
}
// CHECK: comms.kernel @ring(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @ring(%x: memref<10000xbf16>, %y: memref<10000xbf16>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<10000xbf16>) outs(%y : memref<10000xbf16>) {algorithm = "ring"}
  comms.return
}
// CHECK: comms.kernel @subteam(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @subteam(%x: memref<10000xf16>, %y: memref<10000xf16>) attributes {ranks = 8 : i64, lsa_size = 4 : i64} {
  %team = comms.team rail
  %half = comms.team lsa
  %part = comms.team_split %half outer 2
  comms.all_reduce max %team ins(%x : memref<10000xf16>) outs(%y : memref<10000xf16>) {algorithm = "two_shot"}
  comms.all_reduce max %part ins(%x : memref<10000xf16>) outs(%y : memref<10000xf16>) {algorithm = "one_shot"}
  comms.return
}
// CHECK: comms.kernel @reduce_scatter(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @reduce_scatter(%x: memref<8000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : memref<8000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
// CHECK: comms.kernel @reduce(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @reduce(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.reduce sum root 3 %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
// CHECK: comms.kernel @rows(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @rows(%x: memref<7x96xbf16>, %y: memref<7x96xbf16>, %w: memref<96xbf16>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<7x96xbf16>) outs(%y : memref<7x96xbf16>) args(%w : memref<96xbf16>)
  consume(%a: tensor<96xf32>, %b: tensor<96xbf16>) {
    %s = comms.row_reduce max %a : tensor<96xf32> -> tensor<1xf32>
    %r = comms.broadcast_row %s : tensor<1xf32> -> tensor<96xf32>
    %e = arith.extf %b : tensor<96xbf16> to tensor<96xf32>
    %p = arith.mulf %e, %r : tensor<96xf32>
    %q = arith.truncf %p : tensor<96xf32> to tensor<96xbf16>
    comms.yield %q : tensor<96xbf16>
  }
  comms.return
}
