// RUN: comms-opt %s -comms-distribute-tiles="threads=512" -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: comms-opt %s -comms-distribute-tiles="threads=1024" -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,MANY

// The last levels of a row, of which every warp has put one value into shared memory in each trip. A thread reads all 32
// of them, four at a time, where few warps do so at once; of 32 warps each lane reads one, and lanes combine neighbors:
// the same tree, and the same bits.
// CHECK-LABEL: comms.kernel @sum
// CHECK:         %[[SHARED:.*]] = comms.scratch
// CHECK:         gpu.barrier
// FEW-COUNT-8:   vector.load %[[SHARED]]{{.*}} {alignment = 16 : i64} : memref<32xi32, #comms.space<shared>>, vector<4xi32>
// FEW-NOT:       gpu.shuffle
// MANY:          memref.load %[[SHARED]]
// MANY-COUNT-5:  gpu.shuffle xor
// MANY-NOT:      gpu.shuffle
// CHECK:         comms.return
comms.kernel @sum(%x: memref<8192xbf16>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<8192xbf16> -> tensor<8192xbf16>
  %w = arith.extf %t : tensor<8192xbf16> to tensor<8192xf32>
  %s = comms.row_reduce sum %w : tensor<8192xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}
