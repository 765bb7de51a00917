// RUN: comms-opt %s -comms-distribute-tiles="threads=32" -canonicalize -cse -split-input-file | FileCheck %s

// A warp that is alone has no idle thread: 128 elements are 8 bytes for each.
// CHECK-LABEL: comms.kernel @short
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c4 : index
// CHECK-NOT:     scf.if
// CHECK:         vector.load %x[%[[FIRST]]] {alignment = 8 : i64} : memref<128xbf16>, vector<4xbf16>
// CHECK-NOT:     scf.if
// CHECK:         vector.store %{{.*}}, %y[%[[FIRST]]] {alignment = 8 : i64} : memref<128xbf16>, vector<4xbf16>
comms.kernel @short(%x: memref<128xbf16>, %y: memref<128xbf16>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<128xbf16> -> tensor<128xbf16>
  comms.tile_store %t, %y[%c0] : tensor<128xbf16>, memref<128xbf16>
  comms.return
}

// -----

// Never less than 32 bits, which a packet holds.
// CHECK-LABEL: comms.kernel @least
// CHECK:         scf.if
// CHECK:         vector.load %x[%{{.*}}] {alignment = 4 : i64} : memref<32xbf16>, vector<2xbf16>
comms.kernel @least(%x: memref<32xbf16>, %y: memref<32xbf16>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<32xbf16> -> tensor<32xbf16>
  comms.tile_store %t, %y[%c0] : tensor<32xbf16>, memref<32xbf16>
  comms.return
}
