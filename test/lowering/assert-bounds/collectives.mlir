// What collectives expand to needs no check at run time, whatever the algorithm
// and the protocol. All sizes leave tails.
// RUN: comms-opt %s -comms-expand-collectives="protocol=pull" -canonicalize -cse -comms-lower-channels -comms-eliminate-barriers -canonicalize -cse -comms-assert-bounds | FileCheck %s
// RUN: comms-opt %s -comms-expand-collectives="protocol=push" -canonicalize -cse -comms-lower-channels -comms-eliminate-barriers -canonicalize -cse -comms-assert-bounds | FileCheck %s
// RUN: comms-opt %s -comms-expand-collectives="protocol=ll" -canonicalize -cse -comms-lower-channels -comms-eliminate-barriers -canonicalize -cse -comms-assert-bounds | FileCheck %s
// RUN: sed s/96x/128x/g %s | comms-opt -comms-expand-collectives="protocol=ll128" -canonicalize -cse -comms-lower-channels -comms-eliminate-barriers -canonicalize -cse -comms-assert-bounds | FileCheck %s

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
// CHECK: comms.kernel @all_gather(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @all_gather(%x: memref<1000xi8>, %y: memref<8000xi8>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<1000xi8>) outs(%y : memref<8000xi8>)
  comms.return
}
// CHECK: comms.kernel @all_to_all(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @all_to_all(%x: memref<8x1000xf32>, %y: memref<8x1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : memref<8x1000xf32>) outs(%y : memref<8x1000xf32>)
  comms.return
}
// CHECK: comms.kernel @broadcast(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @broadcast(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.broadcast root 3 %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
// CHECK: comms.kernel @gather(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @gather(%x: memref<1000xf32>, %y: memref<8000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.gather root 3 %team ins(%x : memref<1000xf32>) outs(%y : memref<8000xf32>)
  comms.return
}
// CHECK: comms.kernel @scatter(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @scatter(%x: memref<8000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.scatter root 3 %team ins(%x : memref<8000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
// CHECK: comms.kernel @send_recv(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @send_recv(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.send_recv %team from 1 to 2 ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
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
// CHECK: comms.kernel @permutation(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @permutation(%x: !comms.window<100000xbf16>, %y: !comms.window<100000xbf16>) attributes {ranks = 8 : i64, comms.round_bytes = 65536 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<100000xbf16>) outs(%y : !comms.window<100000xbf16>) {algorithm = "permutation"}
  comms.return
}
// CHECK: comms.kernel @permutation_through_channels(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @permutation_through_channels(%x: memref<8008xbf16>, %y: memref<1001xbf16>) attributes {ranks = 8 : i64, comms.round_bytes = 4096 : i64} {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : memref<8008xbf16>) outs(%y : memref<1001xbf16>) {algorithm = "permutation"}
  comms.return
}
// CHECK: comms.kernel @permutation_broadcast(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @permutation_broadcast(%x: !comms.window<8000003xf32>, %y: !comms.window<8000003xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.broadcast root 1 %team ins(%x : !comms.window<8000003xf32>) outs(%y : !comms.window<8000003xf32>) {algorithm = "permutation"}
  comms.return
}
// CHECK: comms.kernel @permutation_all_to_all(
// CHECK-NOT: comms.check_bounds
// CHECK-NOT: comms.channel_barrier
comms.kernel @permutation_all_to_all(%x: !comms.window<8x1001xf32>, %y: !comms.window<8x1001xf32>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<8x1001xf32>) outs(%y : !comms.window<8x1001xf32>) {algorithm = "permutation"}
  comms.return
}
