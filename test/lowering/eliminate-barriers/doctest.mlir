// RUN: comms-opt %s -comms-eliminate-barriers | FileCheck %s

// CHECK:      comms.barrier %{{.*}} block
// CHECK-NEXT: comms.tile_load
// CHECK-NEXT: comms.tile_store
// CHECK-NEXT: comms.return
comms.kernel @two_channels(%x: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  comms.barrier %team block
  %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  comms.barrier %team block
  comms.tile_store %tile, %x[%c0] : tensor<8xf32>, memref<8xf32>
  comms.return
}
