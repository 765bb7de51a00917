// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse | FileCheck %s

// CHECK-LABEL: comms.kernel @scale
// CHECK-DAG:   %[[A:.*]] = comms.scratch : memref<64xf32>
// CHECK-DAG:   %[[B:.*]] = comms.scratch : memref<64xf32>
// CHECK:       scf.for %[[I:.*]] = %c0 to %c64 step %c16 {
// CHECK-NEXT:    %[[X:.*]] = vector.load %x[%[[I]]] : memref<64xf32>, vector<16xf32>
// CHECK-NEXT:    %[[T:.*]] = arith.mulf %[[X]], %{{.*}} : vector<16xf32>
// CHECK-NEXT:    vector.store %[[X]], %[[LANES:.*]][%[[I]]] : memref<64xf32>, vector<16xf32>
// CHECK-NEXT:    vector.store %[[T]], %[[TWICE:.*]][%[[I]]] : memref<64xf32>, vector<16xf32>
// CHECK-NEXT:  } {comms.tile}
// CHECK:       scf.for %[[LEVEL:.*]] = %c0 to %c2 step %c1 {
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[END:.*]] step %c16 {
// CHECK-NEXT:      %[[FIRST:.*]] = arith.addi %[[I]], %[[I]] : index
// CHECK-NEXT:      %[[SECOND:.*]] = arith.addi %[[FIRST]], %c16 : index
// CHECK-NEXT:      %[[L:.*]] = vector.load %[[LANES]][%[[FIRST]]]
// CHECK-NEXT:      %[[R:.*]] = vector.load %[[LANES]][%[[SECOND]]]
// CHECK-NEXT:      %[[EVEN:.*]] = vector.shuffle %[[L]], %[[R]] [0, 2, 4,
// CHECK-NEXT:      %[[ODD:.*]] = vector.shuffle %[[L]], %[[R]] [1, 3, 5,
// CHECK-NEXT:      %[[M:.*]] = arith.maximumf %[[EVEN]], %[[ODD]] : vector<16xf32>
// CHECK-NEXT:      vector.store %[[M]], %[[LANES]][%[[I]]]
// CHECK-NEXT:    } {comms.tile}
// CHECK-NEXT:    vector.store %{{.*}}, %[[LANES]][%[[END]]]
// CHECK-NEXT:  } {comms.tile}
// CHECK:       %[[MOST:.*]] = vector.extract %{{.*}}[0] : f32 from vector<1xf32>
// CHECK-NEXT:  scf.for %[[I:.*]] = %c0 to %c64 step %c16 {
// CHECK-NEXT:    %[[V:.*]] = vector.load %[[TWICE]][%[[I]]]
// CHECK-NEXT:    %[[W:.*]] = vector.broadcast %[[MOST]] : f32 to vector<16xf32>
// CHECK-NEXT:    %[[D:.*]] = arith.subf %[[V]], %[[W]] : vector<16xf32>
// CHECK-NEXT:    %[[N:.*]] = arith.cmpf uno, %[[D]], %[[D]] : vector<16xf32>
// CHECK-NEXT:    %[[C:.*]] = arith.select %[[N]], %{{.*}}, %[[D]]
// CHECK-NEXT:    vector.store %[[C]], %y[%[[I]]]
// CHECK-NEXT:  } {comms.tile}
comms.kernel @scale(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %twice = arith.mulf %tile, %two : tensor<64xf32>
  %most = comms.row_reduce max %tile : tensor<64xf32> -> tensor<1xf32>
  %row = comms.broadcast_row %most : tensor<1xf32> -> tensor<64xf32>
  %less = arith.subf %twice, %row : tensor<64xf32>
  comms.tile_store %less, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
