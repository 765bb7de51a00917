// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// 64 bf16 are 32 packets; a multicast begins with the next rank and ends with
// its own; the flag and the own row are found once, at the channel.
// CHECK-LABEL: comms.kernel @multicast
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<2x4x8x32xi64>
// CHECK-SAME:  comms.hidden, comms.init = "zero"
comms.kernel @multicast(%x: memref<64xbf16>, %slot: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[RANK:.*]] = comms.rank %[[TEAM:.*]]
  // CHECK-DAG: %[[EPOCH:.*]] = comms.epoch
  %team = comms.team world
  // CHECK:     %[[MINE:.*]] = arith.muli %[[RANK]], %c256
  // CHECK:     %[[ROW:.*]] = arith.addi %[[BUFFER:.*]], %[[MINE]]
  // CHECK:     %[[FLAG:.*]] = arith.index_cast %[[EPOCH]] : index to i32
  // CHECK:     %[[OWN:.*]] = comms.local %[[WINDOW]]
  %ch = comms.channel 7 multicast over %team slots 8 : !comms.channel<ll, 64xbf16>
  // CHECK:     %[[TILE:.*]] = comms.tile_load
  %tile = comms.tile_load %x[%c0] : memref<64xbf16> -> tensor<64xbf16>
  // CHECK:     %[[SLOT:.*]] = arith.muli %slot, %c32
  // CHECK:     %[[AT:.*]] = arith.addi %[[ROW]], %[[SLOT]]
  // CHECK:     scf.for %[[I:.*]] = %c1 to %c5 step %c1 {
  // CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[RANK]], %[[I]]
  // CHECK-NEXT: %[[PEER:.*]] = arith.remui %[[SUM]], %c4
  // CHECK-NEXT: %[[PART:.*]] = comms.peer %[[WINDOW]] at %[[PEER]] of %[[TEAM]]
  // CHECK-NEXT: comms.packet_store %[[TILE]], %[[PART]][%[[AT]]] flag %[[FLAG]]
  // CHECK-NEXT: }
  comms.send %tile on %ch[%slot] : tensor<64xbf16>, !comms.channel<ll, 64xbf16>
  // Flags tell what has come: no barrier.
  // CHECK-NOT: comms.barrier
  comms.channel_barrier %ch : !comms.channel<ll, 64xbf16>
  // CHECK: comms.packet_load %[[OWN]][%{{.*}}] flag %[[FLAG]] : memref<2x4x8x32xi64> -> tensor<64xbf16>
  %got = comms.recv %ch[%slot] from %c0 : !comms.channel<ll, 64xbf16> -> tensor<64xbf16>
  comms.tile_store %got, %x[%c0] : tensor<64xbf16>, memref<64xbf16>
  comms.return
}

// One sender: one row, at the receiver.
// CHECK-LABEL: comms.kernel @single
// CHECK-SAME:  !comms.window<2x1x2x3xi64>
comms.kernel @single(%x: memref<9xf8E4M3FN>, %peer: index, %n: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %ch = comms.channel 0 single over %team slots 2 : !comms.channel<ll, 9xf8E4M3FN>
  %tile = comms.tile_load %x[%c0] : memref<9xf8E4M3FN> -> tensor<9xf8E4M3FN>
  // CHECK-NOT: scf.for
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %c3
  // CHECK: %[[PART:.*]] = comms.peer %{{.*}} at %peer
  // CHECK: comms.packet_store %{{.*}}, %[[PART]][%[[AT]]] flag %{{.*}} valid %n
  comms.send %tile on %ch[%c1] to %peer valid %n : tensor<9xf8E4M3FN>, !comms.channel<ll, 9xf8E4M3FN>
  // CHECK: comms.packet_load %{{.*}}[%[[AT]]] flag %{{.*}} valid %n
  %got = comms.recv %ch[%c1] from %peer valid %n : !comms.channel<ll, 9xf8E4M3FN> -> tensor<9xf8E4M3FN>
  comms.tile_store %got, %x[%c0] : tensor<9xf8E4M3FN>, memref<9xf8E4M3FN>
  comms.return
}

// 64-bit elements are two packets each.
// CHECK-LABEL: comms.kernel @wide
// CHECK-SAME:  !comms.window<2x2x1x32xi64>
comms.kernel @wide() attributes {ranks = 2 : i64} {
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 16xi64>
  comms.return
}
