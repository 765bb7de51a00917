// Every step has a barrier that all ranks reach, outside of the branches.
// RUN: comms-opt %s -split-input-file --comms-expand-collectives="algorithm=ring protocol=pull" --canonicalize --cse | FileCheck %s

// CHECK-LABEL: comms.kernel @all_reduce
// CHECK: %[[SUMS:.*]] = comms.channel 0 single over %{{.*}} slots 1 : <pull, 16xbf16>
// CHECK: %[[DONE:.*]] = comms.channel 1 single over %{{.*}} slots 1 : <pull, 16xbf16>
// CHECK: scf.for
// CHECK:   %[[OWN:.*]] = scf.if %{{.*}} -> (tensor<16xf32>) {
// CHECK:     comms.tile_load
// CHECK:   %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c8191 step %c1 iter_args(%[[CARRIED:.*]] = %[[OWN]]) -> (tensor<16xf32>) {
// CHECK:     scf.if
// CHECK:       %[[ROUNDED:.*]] = arith.truncf %[[CARRIED]]
// CHECK:       comms.send %[[ROUNDED]] on %[[SUMS]]
// CHECK:     }
// CHECK-NEXT: comms.channel_barrier %[[SUMS]]
// CHECK:     scf.if
// CHECK:       comms.recv %[[SUMS]]
// CHECK:       comms.tile_load
// CHECK:       arith.addf
// CHECK:     } else {
// CHECK:       scf.yield %[[CARRIED]]
// CHECK:   %[[LAST:.*]] = arith.truncf %[[SUM]] : tensor<16xf32> to tensor<16xbf16>
// CHECK:   scf.if
// CHECK:     arith.extf %[[LAST]]
// CHECK:     comms.tile_store
// CHECK:   scf.for %{{.*}} iter_args(%{{.*}} = %[[LAST]]) -> (tensor<16xbf16>)
// CHECK:     comms.send
// CHECK:     comms.channel_barrier %[[DONE]]
// CHECK:     comms.recv %[[DONE]]
// CHECK:     comms.tile_store
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @all_reduce(%x: memref<16xbf16>, %y: memref<16xf32>) attributes {ranks = 8192 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16xbf16>) outs(%y : memref<16xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @reduce_scatter
// CHECK: comms.channel 0 single over %{{.*}} slots 3 : <pull, 16xf32>
// CHECK: %[[SUM:.*]] = scf.for %[[S:.*]] = %c0 to %c3
// CHECK:   comms.send
// CHECK:   comms.channel_barrier
// CHECK:   comms.recv
// CHECK:   comms.tile_load
// CHECK:   arith.addf
// CHECK: comms.tile_store %[[SUM]], %y
comms.kernel @reduce_scatter(%x: memref<64xf32>, %y: memref<16xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : memref<64xf32>) outs(%y : memref<16xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @all_gather
// CHECK: comms.channel 0 single over %{{.*}} slots 3
// CHECK: %[[OWN:.*]] = comms.tile_load
// CHECK: comms.tile_store %[[OWN]]
// CHECK: scf.for %[[S:.*]] = %c0 to %c3 step %c1 iter_args(%[[CARRIED:.*]] = %[[OWN]])
// CHECK:   comms.send %[[CARRIED]] on %{{.*}}[%[[SLOT:.*]]] to
// CHECK:   comms.channel_barrier
// CHECK:   %[[TILE:.*]] = comms.recv %{{.*}}[%[[SLOT]]] from
// CHECK:   comms.tile_store %[[TILE]]
// CHECK:   scf.yield %[[TILE]]
comms.kernel @all_gather(%x: memref<16xf32>, %y: memref<64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<16xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// A pipeline; the root hears nothing back.
// CHECK-LABEL: comms.kernel @broadcast
// CHECK: comms.channel 0 single
// CHECK: scf.for %{{.*}} iter_args
// CHECK:   %[[SENT:.*]] = scf.if
// CHECK:     comms.tile_load
// CHECK:     comms.tile_store
// CHECK:   scf.if
// CHECK:     comms.send %[[SENT]]
// CHECK:   comms.channel_barrier
// CHECK:   scf.if
// CHECK:     comms.recv
// CHECK:     comms.tile_store
// CHECK: comms.barrier %{{.*}} block
comms.kernel @broadcast(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.broadcast root 3 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// Alone, a rank sends nothing.
// CHECK-LABEL: comms.kernel @alone
// CHECK-NOT: comms.send
// CHECK: comms.tile_load
// CHECK: comms.tile_store
// CHECK-NOT: comms.send
// CHECK: comms.return
comms.kernel @alone(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 1 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}
