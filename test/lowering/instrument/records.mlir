// RUN: comms-opt %s -comms-instrument | FileCheck %s

// Windows are recorded, this rank's memory and scratch are not.
// CHECK-LABEL: @tiles
comms.kernel @tiles(%w: !comms.window<2x64xbf16>, %x: memref<64xbf16>, %n: index) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %team = comms.team world
  %own = comms.local %w : !comms.window<2x64xbf16> -> memref<2x64xbf16>
  %peer = comms.peer %w at %c0 of %team : !comms.window<2x64xbf16> -> memref<2x64xbf16>
  // CHECK:      %[[OWN:.*]] = comms.local
  // CHECK-NEXT: %[[PEER:.*]] = comms.peer
  // CHECK-NEXT: comms.tile_load %x
  %a = comms.tile_load %x[%c0] : memref<64xbf16> -> tensor<64xbf16>
  // CHECK:      %[[COUNT:.*]] = arith.constant 64
  // CHECK-NEXT: comms.record_access write %[[OWN]][%c64] count %[[COUNT]]
  // CHECK-NEXT: comms.tile_store %{{.*}}, %[[OWN]]
  comms.tile_store %a, %own[%c64] : tensor<64xbf16>, memref<2x64xbf16>
  // CHECK-NEXT: comms.record_access read %[[PEER]][%c0] count %n
  // CHECK-NEXT: comms.tile_load %[[PEER]]
  %b = comms.tile_load %peer[%c0] valid %n : memref<2x64xbf16> -> tensor<64xbf16>
  // CHECK-NOT: record
  // CHECK: comms.tile_store %{{.*}}, %x
  comms.tile_store %b, %x[%c0] : tensor<64xbf16>, memref<64xbf16>
  comms.return
}

// Packets synchronize with the accesses that follow the record: 3 packets for
// 5 bf16.
// CHECK-LABEL: @packets
comms.kernel @packets(%w: !comms.window<8xi64>, %p: !comms.window<5xf32>, %n: index, %f: i32) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %m = comms.local %w : !comms.window<8xi64> -> memref<8xi64>
  // CHECK:      comms.record_sync "packet_load"(%c0)
  // CHECK-NEXT: %[[COUNT:.*]] = arith.constant 3
  // CHECK-NEXT: comms.record_access read %{{.*}}[%c0] count %[[COUNT]]
  // CHECK-NEXT: comms.packet_load
  %a = comms.packet_load %m[%c0] flag %f : memref<8xi64> -> tensor<5xbf16>
  // With `valid`, (16 n + 31) / 32.
  // CHECK:      comms.record_sync "packet_store"(%c0)
  // CHECK-DAG:  %[[C16:.*]] = arith.constant 16
  // CHECK-DAG:  %[[C31:.*]] = arith.constant 31
  // CHECK-DAG:  %[[C32:.*]] = arith.constant 32
  // CHECK:      %[[BITS:.*]] = arith.muli %n, %[[C16]]
  // CHECK-NEXT: %[[ROUNDED:.*]] = arith.addi %[[BITS]], %[[C31]]
  // CHECK-NEXT: %[[PACKETS:.*]] = arith.divui %[[ROUNDED]], %[[C32]]
  // CHECK-NEXT: comms.record_access write %{{.*}}[%c0] count %[[PACKETS]]
  // CHECK-NEXT: comms.packet_store
  comms.packet_store %a, %m[%c0] flag %f valid %n : tensor<5xbf16>, memref<8xi64>
  %q = comms.local %p : !comms.window<5xf32> -> memref<5xf32>
  // CHECK: comms.record_sync "poison_load"(%c0)
  // CHECK: comms.record_access read
  // CHECK-NEXT: comms.poison_load
  %b = comms.poison_load %q[%c0] : memref<5xf32> -> tensor<5xf32>
  // CHECK: comms.record_sync "poison_store"(%c0)
  // CHECK: comms.record_access write
  // CHECK-NEXT: comms.poison_store
  comms.poison_store %b, %q[%c0] : tensor<5xf32>, memref<5xf32>
  // CHECK: comms.record_sync "poison_fill"(%c0)
  // CHECK: comms.record_access write %{{.*}}[%c0] count %n
  // CHECK-NEXT: comms.poison_fill
  comms.poison_fill %q[%c0] count %n : memref<5xf32>
  comms.return
}

// One-sided operations touch the peer's part, seen through a view made for the
// record.
// CHECK-LABEL: @one_sided
comms.kernel @one_sided(%w: !comms.window<8xf32>, %x: memref<8xf32>, %s: !comms.signal<5>, %v: i64) attributes {ranks = 2 : i64} {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %team = comms.team world
  // CHECK:      comms.record_sync "put_signal"(%c4, %c1)
  // CHECK-NEXT: %[[PEER:.*]] = comms.peer %w at %c1
  // CHECK-NEXT: comms.record_access write %[[PEER]][%c4] count %c1
  // CHECK-NEXT: comms.put_signal
  comms.put_signal %x[%c1] to %w[%c4] count %c1 at %c1 of %team then inc %s[%c4] : memref<8xf32>, !comms.window<8xf32>, !comms.signal<5>
  // CHECK-NEXT: comms.record_sync "wait_signal_from"(%c4, %c1)
  // CHECK-NEXT: comms.wait_signal_from
  %t = comms.wait_signal_from %s[%c4] ge %v from %c1 of %team : !comms.signal<5>
  // CHECK-NEXT: comms.record_sync "barrier"
  // CHECK-NEXT: comms.barrier
  comms.barrier %team block
  comms.return
}

// Vectors of a window are recorded.
// CHECK-LABEL: @vectors
comms.kernel @vectors(%w: !comms.window<32xf32>, %x: memref<32xf32>) attributes {ranks = 2 : i64} {
  %c8 = arith.constant 8 : index
  %own = comms.local %w : !comms.window<32xf32> -> memref<32xf32>
  // CHECK:      %[[OWN:.*]] = comms.local
  // CHECK:      comms.record_access read %[[OWN]][%c8] count %c4
  // CHECK-NEXT: vector.load %[[OWN]]
  %a = vector.load %own[%c8] : memref<32xf32>, vector<4xf32>
  // CHECK:      comms.record_access write %[[OWN]][%c8] count %c4
  // CHECK-NEXT: vector.store %{{.*}}, %[[OWN]]
  vector.store %a, %own[%c8] : memref<32xf32>, vector<4xf32>
  // CHECK-NOT: record
  vector.store %a, %x[%c8] : memref<32xf32>, vector<4xf32>
  comms.return
}
