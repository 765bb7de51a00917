// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file > %t
// RUN: FileCheck %s < %t

// The code of a row does not grow with it: 8192 and 4096 differ in constants only.
// CHECK-LABEL: comms.kernel @short
// CHECK-COUNT-3: } {comms.tile}
// CHECK-NOT:     comms.tile
// CHECK:         comms.return
comms.kernel @short(%x: memref<4096xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<4096xf32> -> tensor<4096xf32>
  %s = comms.row_reduce sum %a : tensor<4096xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @long
// CHECK-COUNT-3: } {comms.tile}
// CHECK-NOT:     comms.tile
// CHECK:         comms.return
comms.kernel @long(%x: memref<8192xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<8192xf32> -> tensor<8192xf32>
  %s = comms.row_reduce sum %a : tensor<8192xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// Beyond 16,384 elements the chunks' results are added from left to right; what is no element is -0.0.
// CHECK-LABEL: comms.kernel @folded
// CHECK:       %[[Z:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK:       %[[ROW:.*]] = comms.scratch : memref<50016xf32>
// CHECK:       vector.store %[[Z]], %[[ROW]][%c50000]
// CHECK:       scf.for %{{.*}} = %c0 to %c14 step %c1 {
// CHECK:       %[[FIRST:.*]] = vector.load %[[ROW]][%c0] : memref<50016xf32>, vector<1xf32>
// CHECK:       scf.for %[[I:.*]] = %c1 to %c4 step %c1 iter_args(%[[SUM:.*]] = %[[FIRST]])
// CHECK-NEXT:    %[[NEXT:.*]] = vector.load %[[ROW]][%[[I]]]
// CHECK-NEXT:    arith.addf %[[SUM]], %[[NEXT]] : vector<1xf32>
comms.kernel @folded(%x: memref<50000xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<50000xf32> -> tensor<50000xf32>
  %s = comms.row_reduce sum %a : tensor<50000xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}
