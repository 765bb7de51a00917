// RUN: comms-opt %s -comms-unroll-ranks -canonicalize | FileCheck %s

// CHECK-LABEL: comms.kernel @push
// CHECK:         %[[TEAM:.*]] = comms.team world
// CHECK-NEXT:    %[[TILE:.*]] = comms.tile_load %x[%c0]
// CHECK-NEXT:    %[[RANK:.*]] = comms.rank %[[TEAM]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[RANK]], %c1 : index
// CHECK-NEXT:    %[[PEER:.*]] = arith.remui %[[NEXT]], %c2 : index
// CHECK-NEXT:    %[[PART:.*]] = comms.peer %w at %[[PEER]] of %[[TEAM]]
// CHECK-NEXT:    comms.tile_store %[[TILE]], %[[PART]][%c0]
// CHECK-NEXT:    comms.return
comms.kernel @push(%x: memref<8xf32>, %w: !comms.window<8xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  comms.for_peers %team as %peer {
    %part = comms.peer %w at %peer of %team : !comms.window<8xf32> -> memref<8xf32>
    comms.tile_store %tile, %part[%c0] : tensor<8xf32>, memref<8xf32>
  }
  comms.return
}
