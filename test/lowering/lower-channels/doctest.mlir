// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// CHECK:      comms.kernel @swap(%x: memref<64xf32>, %[[W:[^:]*]]: !comms.window<2x2x1x64xi64>
// CHECK-SAME:   {comms.hidden, comms.init = "zero"
// CHECK-DAG:  %[[TEAM:.*]] = comms.team world
// CHECK-DAG:  %[[RANK:.*]] = comms.rank %[[TEAM]]
// CHECK-DAG:  %[[PEER:.*]] = arith.subi %c1, %[[RANK]]
// CHECK-DAG:  %[[EPOCH:.*]] = comms.epoch
// CHECK-DAG:  %[[TURN:.*]] = arith.remui %[[EPOCH]], %c2
// CHECK-DAG:  %[[BUFFER:.*]] = arith.muli %[[TURN]], %c128
// CHECK-DAG:  %[[MINE:.*]] = arith.muli %[[RANK]], %c64
// CHECK-DAG:  %[[OWNROW:.*]] = arith.addi %[[BUFFER]], %[[MINE]]
// CHECK-DAG:  %[[FLAG:.*]] = arith.index_cast %[[EPOCH]] : index to i32
// CHECK-DAG:  %[[OWN:.*]] = comms.local %[[W]]
// CHECK:      %[[TILE:.*]] = comms.tile_load %x[%c0]
// CHECK-NEXT: %[[PART:.*]] = comms.peer %[[W]] at %[[PEER]] of %[[TEAM]]
// CHECK-NEXT: comms.packet_store %[[TILE]], %[[PART]][%[[OWNROW]]] flag %[[FLAG]]
// CHECK-NEXT: %[[THEIRS:.*]] = arith.muli %[[PEER]], %c64
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[BUFFER]], %[[THEIRS]]
// CHECK-NEXT: %[[GOT:.*]] = comms.packet_load %[[OWN]][%[[ROW]]] flag %[[FLAG]]
// CHECK-NEXT: comms.tile_store %[[GOT]], %x[%c0]
// CHECK-NEXT: comms.return
comms.kernel @swap(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %rank = comms.rank %team
  %peer = arith.subi %c1, %rank : index
  %ch = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 64xf32>
  %mine = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.send %mine on %ch[%c0] to %peer : tensor<64xf32>, !comms.channel<ll, 64xf32>
  %theirs = comms.recv %ch[%c0] from %peer : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  comms.tile_store %theirs, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
