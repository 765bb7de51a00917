// RUN: comms-opt %s -pass-pipeline="builtin.module(comms.kernel(comms-expand-collectives{ranks=4 blocks=4 threads=128 cluster=8 algorithm=one_shot protocol=lamport},canonicalize,cse,comms-lower-channels,comms-eliminate-barriers,canonicalize,cse,comms-unroll-ranks,canonicalize,cse,comms-distribute-tiles{threads=128 cluster=8},canonicalize,cse))" | FileCheck %s

// One all-reduce of rows with what is fused into it: loads, then all polls, then arithmetic in registers
// up to the stores; the slots are cleared last. Nothing lies in memory but what the kernel is for. What a
// block sends of its four rows is straight code.
// CHECK-LABEL: comms.kernel @normalize
// CHECK:         memref.alloca() : memref<1xindex>
// CHECK-NOT:     memref.alloca
// CHECK-NOT:     scf.for
// CHECK-COUNT-4:  vector.load %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xbf16>, vector<8xbf16>
// CHECK-NOT:     vector.load
// CHECK:         scf.for
// CHECK:           vector.load %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xbf16>, vector<8xbf16>
// CHECK:           comms.poison_load
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      comms.poison_load
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      comms.poison_load
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      comms.poison_load
// CHECK:           gpu.subgroup_reduce maxsi
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK:           vector.store %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xbf16>, vector<8xbf16>
// CHECK-NEXT:      comms.poison_fill {{.*}} {comms.stale} :
// CHECK-NEXT:      comms.poison_fill {{.*}} {comms.stale} :
// CHECK-NEXT:      comms.poison_fill {{.*}} {comms.stale} :
// CHECK-NEXT:      comms.poison_fill {{.*}} {comms.stale} :
// CHECK-NEXT:    {{^ *}}}
// CHECK-NEXT:    comms.return
comms.kernel @normalize(%x: !comms.window<16x8192xbf16>, %residual: memref<16x8192xbf16>, %y: memref<16x8192xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<16x8192xbf16>) outs(%y : memref<16x8192xbf16>)
      args(%residual : memref<16x8192xbf16>)
  consume (%sum: tensor<8192xf32>, %r: tensor<8192xbf16>) {
    %wide = arith.extf %r : tensor<8192xbf16> to tensor<8192xf32>
    %added = arith.addf %sum, %wide : tensor<8192xf32>
    %most = comms.row_reduce max %added : tensor<8192xf32> -> tensor<1xf32>
    %mosts = comms.broadcast_row %most : tensor<1xf32> -> tensor<8192xf32>
    %less = arith.subf %added, %mosts : tensor<8192xf32>
    %out = arith.truncf %less : tensor<8192xf32> to tensor<8192xbf16>
    comms.yield %out : tensor<8192xbf16>
  }
  comms.return
}

// A flat tile is one vector of each thread: 8 * 128 * 8 elements.
// CHECK-LABEL: comms.kernel @flat
// CHECK-SAME:    tile = 8192 : i64
// CHECK-NOT:     alloca
// CHECK:         comms.return
comms.kernel @flat(%x: memref<65536xbf16>, %y: memref<65536xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<65536xbf16>) outs(%y : memref<65536xf32>)
  consume (%sum: tensor<65536xf32>) {
    comms.yield %sum : tensor<65536xf32>
  }
  comms.return
}
