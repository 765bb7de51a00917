// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// 192 bf16 are three lines of 16 i64; their rests, 2 i64 each, lie behind the
// lines of all slots, so that slots are 48 apart and rows 8 times that.
// CHECK-LABEL: comms.kernel @multicast
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<2x4x8x54xi64>
// CHECK-SAME:  comms.hidden, comms.init = "zero"
comms.kernel @multicast(%x: memref<192xbf16>, %slot: index, %n: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[RANK:.*]] = comms.rank %[[TEAM:.*]]
  // CHECK-DAG: %[[EPOCH:.*]] = comms.epoch
  %team = comms.team world
  // CHECK:     %[[BUFFER:.*]] = arith.muli %{{.*}}, %c1536
  // CHECK:     %[[MINE:.*]] = arith.muli %[[RANK]], %c384
  // CHECK:     %[[ROW:.*]] = arith.addi %[[BUFFER]], %[[MINE]]
  // CHECK:     %[[FLAG:.*]] = arith.index_cast %[[EPOCH]] : index to i32
  // CHECK:     %[[OWN:.*]] = comms.local %[[WINDOW]]
  %ch = comms.channel 7 multicast over %team slots 8 : !comms.channel<ll128, 192xbf16>
  %tile = comms.tile_load %x[%c0] valid %n : memref<192xbf16> -> tensor<192xbf16>
  // CHECK:     %[[SLOT:.*]] = arith.muli %slot, %c48
  // CHECK:     %[[AT:.*]] = arith.addi %[[ROW]], %[[SLOT]]
  // CHECK:     scf.for
  // CHECK:     comms.packet_store %{{.*}}, %{{.*}}[%[[AT]]] flag %[[FLAG]] valid %n assumes store128_whole
  comms.send %tile on %ch[%slot] valid %n : tensor<192xbf16>, !comms.channel<ll128, 192xbf16>
  // CHECK-NOT: comms.barrier
  comms.channel_barrier %ch : !comms.channel<ll128, 192xbf16>
  // CHECK: comms.packet_load %[[OWN]][%{{.*}}] flag %[[FLAG]] assumes store128_whole : memref<2x4x8x54xi64> -> tensor<192xbf16>
  %got = comms.recv %ch[%slot] from %c0 : !comms.channel<ll128, 192xbf16> -> tensor<192xbf16>
  comms.tile_store %got, %x[%c0] : tensor<192xbf16>, memref<192xbf16>
  comms.return
}

// One sender: one row, at the receiver.
// CHECK-LABEL: comms.kernel @single
// CHECK-SAME:  !comms.window<2x1x2x18xi64>
comms.kernel @single(%x: memref<128xi8>, %peer: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %ch = comms.channel 0 single over %team slots 2 : !comms.channel<ll128, 128xi8>
  %tile = comms.tile_load %x[%c0] : memref<128xi8> -> tensor<128xi8>
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %c16
  // CHECK: %[[PART:.*]] = comms.peer %{{.*}} at %peer
  // CHECK: comms.packet_store %{{.*}}, %[[PART]][%[[AT]]] flag %{{.*}} assumes store128_whole
  comms.send %tile on %ch[%c1] to %peer : tensor<128xi8>, !comms.channel<ll128, 128xi8>
  // CHECK: comms.packet_load %{{.*}}[%[[AT]]] flag %{{.*}} assumes store128_whole
  %got = comms.recv %ch[%c1] from %peer : !comms.channel<ll128, 128xi8> -> tensor<128xi8>
  comms.tile_store %got, %x[%c0] : tensor<128xi8>, memref<128xi8>
  comms.return
}
