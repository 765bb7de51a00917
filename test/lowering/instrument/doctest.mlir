// RUN: comms-opt %s -comms-instrument | FileCheck %s

// CHECK:      %[[OWN:.*]] = comms.local %w
// CHECK-NEXT: %[[TILE:.*]] = comms.tile_load %x
// CHECK-NEXT: %[[C8:.*]] = arith.constant 8 : index
// CHECK-NEXT: comms.record_access write %[[OWN]][%c0] count %[[C8]]
// CHECK-NEXT: comms.tile_store %[[TILE]], %[[OWN]]
// CHECK-NEXT: comms.record_sync "barrier"
// CHECK-NEXT: comms.barrier
// CHECK-NEXT: comms.return
comms.kernel @publish(%w: !comms.window<8xf32>, %x: memref<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %own = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
  %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  comms.tile_store %tile, %own[%c0] : tensor<8xf32>, memref<8xf32>
  comms.barrier %team block
  comms.return
}
