// The example of the pass's description.
// RUN: comms-opt %s --comms-expand-collectives --canonicalize --cse | FileCheck %s

// CHECK-LABEL: comms.kernel @sum
comms.kernel @sum(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
      {algorithm = "one_shot", protocol = "ll"}
  comms.return
}
// CHECK:      %[[TEAM:.*]] = comms.team world
// CHECK-NEXT: %[[BLOCK:.*]] = comms.block_id
// CHECK-NEXT: %[[BLOCKS:.*]] = comms.num_blocks
// CHECK-NEXT: %[[CHANNEL:.*]] = comms.channel 0 multicast over %[[TEAM]] slots 2 : <ll, 256xf32>
// CHECK-NEXT: scf.for %[[T:.*]] = %[[BLOCK]] to %c2 step %[[BLOCKS]] {
// CHECK-NEXT:   %[[OFFSET:.*]] = arith.muli %[[T]], %c256
// CHECK-NEXT:   %[[TILE:.*]] = comms.tile_load %x[%[[OFFSET]]] : memref<512xf32> -> tensor<256xf32>
// CHECK-NEXT:   comms.send %[[TILE]] on %[[CHANNEL]][%[[T]]] :
// CHECK-NEXT: }
// CHECK-NEXT: comms.channel_barrier %[[CHANNEL]]
// CHECK-NEXT: scf.for %[[T:.*]] = %[[BLOCK]] to %c2 step %[[BLOCKS]] {
// CHECK-NEXT:   %[[A:.*]] = comms.recv %[[CHANNEL]][%[[T]]] from %c0
// CHECK-NEXT:   %[[B:.*]] = comms.recv %[[CHANNEL]][%[[T]]] from %c1
// CHECK-NEXT:   %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : tensor<256xf32>
// CHECK-NEXT:   %[[OFFSET:.*]] = arith.muli %[[T]], %c256
// CHECK-NEXT:   comms.tile_store %[[SUM]], %y[%[[OFFSET]]]
// CHECK-NEXT: }
// CHECK-NEXT: comms.return
