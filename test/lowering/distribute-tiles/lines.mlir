// RUN: comms-opt %s -split-input-file -comms-distribute-tiles -canonicalize -cse | FileCheck %s
// RUN: comms-opt %s -split-input-file -comms-distribute-tiles="threads=32" -canonicalize -cse | FileCheck %s --check-prefix=THREADS

// One thread goes to the end of the last line that holds anything valid, and
// leaves out what has no line.
// CHECK-LABEL: comms.kernel @some
// CHECK:       scf.for
// CHECK-NOT:   scf.if
// CHECK:       comms.packet_store %{{.*}} assumes store128_whole : vector<16xf32>
// CHECK:       scf.for
// CHECK:       scf.if
// CHECK:       comms.packet_store %{{.*}} valid %{{.*}} assumes store128_whole : vector<16xf32>

// Threads: a warp of 32 threads has 128 elements; all of them are here, or none.
// THREADS-LABEL: comms.kernel @some
// THREADS:       %[[WARP:[0-9]+]] = arith.andi %{{.*}}, %c-128
// THREADS:       %[[LAST:[0-9]+]] = arith.addi %[[WARP]], %c127
// THREADS:       arith.cmpi slt, %[[LAST]], %
// THREADS:       comms.packet_store %{{.*}} assumes store128_whole : vector<4xf32>
// THREADS:       } else {
// THREADS:       arith.cmpi slt, %[[WARP]], %
// THREADS:       comms.packet_store %{{.*}} valid %{{.*}} assumes store128_whole : vector<4xf32>
comms.kernel @some(%x: memref<256xf32>, %lines: !comms.window<4x36xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  %box = comms.local %lines : !comms.window<4x36xi64> -> memref<4x36xi64>
  %tile = comms.tile_load %x[%c0] valid %n : memref<256xf32> -> tensor<256xf32>
  comms.packet_store %tile, %box[%c0] flag %flag valid %n assumes store128_whole : tensor<256xf32>, memref<4x36xi64>
  comms.return
}

// -----

// Tiles of one length in elements of two sizes: a thread has 16 bytes of the
// narrow ones, and of the wide ones 16 bytes of each of four lines.
// THREADS-LABEL: comms.kernel @two_widths
// THREADS:       comms.packet_load %{{.*}} assumes store128_whole : memref<4x18xi64> -> vector<16xi8>
// THREADS-DAG:   %[[GROUP:.*]] = arith.andi %[[AT:.*]], %c-128
// THREADS-DAG:   %[[LINES:.*]] = arith.divui %[[GROUP]], %c2
// THREADS:       comms.packet_store %{{.*}} assumes store128_whole : vector<16xi32>
comms.kernel @two_widths(%bytes: !comms.window<4x18xi64>, %words: !comms.window<16x18xi64>) {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  %b = comms.local %bytes : !comms.window<4x18xi64> -> memref<4x18xi64>
  %w = comms.local %words : !comms.window<16x18xi64> -> memref<16x18xi64>
  %tile = comms.packet_load %b[%c0] flag %flag assumes store128_whole : memref<4x18xi64> -> tensor<512xi8>
  %wide = arith.extsi %tile : tensor<512xi8> to tensor<512xi32>
  comms.packet_store %wide, %w[%c0] flag %flag assumes store128_whole : tensor<512xi32>, memref<16x18xi64>
  comms.return
}
