// RUN: comms-opt %s -comms-distribute-tiles="threads=128 cluster=8" -canonicalize -cse -split-input-file | FileCheck %s

// 16 elements of 8 bits in 16 bytes would give work to 512 of 1024 threads. Each takes 8 instead, 16
// bytes of the bf16, and stores 8 bytes; the tile stays in registers.
// CHECK-LABEL: comms.kernel @narrow
// CHECK-NOT:     alloca
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c8 : index
// CHECK-NOT:     scf.if
// CHECK:         vector.load %x[%[[FIRST]]] {alignment = 16 : i64} : memref<8192xbf16>, vector<8xbf16>
// CHECK-NOT:     scf.if
// CHECK:         vector.store %{{.*}}, %y[%[[FIRST]]] {alignment = 8 : i64} : memref<8192xf8E4M3FN>, vector<8xf8E4M3FN>
comms.kernel @narrow(%x: memref<8192xbf16>, %y: memref<8192xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<8192xbf16> -> tensor<8192xbf16>
  %n = arith.truncf %t : tensor<8192xbf16> to tensor<8192xf8E4M3FN>
  comms.tile_store %n, %y[%c0] : tensor<8192xf8E4M3FN>, memref<8192xf8E4M3FN>
  comms.return
}

// -----

// Where all threads have work, the narrowest element takes 16 bytes.
// CHECK-LABEL: comms.kernel @long
// CHECK:         vector.load %x[%{{.*}}] {alignment = 16 : i64} : memref<16384xbf16>, vector<16xbf16>
// CHECK:         vector.store %{{.*}}, %y[%{{.*}}] {alignment = 16 : i64} : memref<16384xf8E4M3FN>, vector<16xf8E4M3FN>
comms.kernel @long(%x: memref<16384xbf16>, %y: memref<16384xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<16384xbf16> -> tensor<16384xbf16>
  %n = arith.truncf %t : tensor<16384xbf16> to tensor<16384xf8E4M3FN>
  comms.tile_store %n, %y[%c0] : tensor<16384xf8E4M3FN>, memref<16384xf8E4M3FN>
  comms.return
}

// -----

// A packet holds four elements of 8 bits: no thread takes fewer, though f64 would have two.
// CHECK-LABEL: comms.kernel @packets
// CHECK:         vector.load %x[%{{.*}}] {alignment = 16 : i64} : memref<2048xf64>, vector<4xf64>
// CHECK:         comms.packet_store %{{.*}} : vector<4xi8>, memref<512xi64>
comms.kernel @packets(%x: memref<2048xf64>, %bytes: memref<2048xi8>, %y: memref<512xi64>, %flag: i32) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<2048xf64> -> tensor<2048xf64>
  %n = arith.fptosi %t : tensor<2048xf64> to tensor<2048xi8>
  comms.packet_store %n, %y[%c0] flag %flag : tensor<2048xi8>, memref<512xi64>
  comms.return
}
