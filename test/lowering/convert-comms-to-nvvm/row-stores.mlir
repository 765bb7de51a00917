// RUN: comms-opt %s -comms-distribute-tiles="threads=128 cluster=2" -convert-comms-to-nvvm="threads=128 cluster=2" -canonicalize | FileCheck %s

// What needs nothing of the row is stored while the CTAs wait for each other's part of it: %kept is, and %scaled is not.
// CHECK-LABEL: llvm.func @early(
// CHECK:         st.async
// CHECK:         llvm.store %{{.*}} : vector<4xf32>
// CHECK-NEXT:    mbarrier.try_wait
// CHECK:         llvm.store %{{.*}} : vector<4xf32>
// CHECK-NOT:     llvm.store %{{.*}} : vector<4xf32>
// CHECK:         llvm.return
comms.kernel @early(%x: memref<1024xf32>, %y: memref<1024xf32>, %z: memref<1024xf32>) attributes {ranks = 1 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<1024xf32> -> tensor<1024xf32>
  %s = comms.row_reduce sum %t : tensor<1024xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<1024xf32>
  %scaled = arith.mulf %t, %b : tensor<1024xf32>
  %kept = arith.addf %t, %t : tensor<1024xf32>
  comms.tile_store %scaled, %y[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.tile_store %kept, %z[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.return
}

// Not past a store to the same array.
// CHECK-LABEL: llvm.func @late(
// CHECK:         mbarrier.try_wait
// CHECK-COUNT-2: llvm.store %{{.*}} : vector<4xf32>
// CHECK:         llvm.return
comms.kernel @late(%x: memref<1024xf32>, %y: memref<1024xf32>) attributes {ranks = 1 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<1024xf32> -> tensor<1024xf32>
  %s = comms.row_reduce sum %t : tensor<1024xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<1024xf32>
  %scaled = arith.mulf %t, %b : tensor<1024xf32>
  %kept = arith.addf %t, %t : tensor<1024xf32>
  comms.tile_store %scaled, %y[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.tile_store %kept, %y[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.return
}
