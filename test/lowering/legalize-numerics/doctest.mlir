// RUN: comms-opt %s -comms-legalize-numerics -canonicalize -cse | FileCheck %s

// CHECK-LABEL: comms.kernel @narrow
// CHECK-DAG:   %[[NAN:.*]] = arith.constant dense<2143289344> : vector<16xi32>
// CHECK-DAG:   %[[HALF:.*]] = arith.constant dense<32767> : vector<16xi32>
// CHECK-DAG:   %[[ONE:.*]] = arith.constant dense<1> : vector<16xi32>
// CHECK-DAG:   %[[SIXTEEN:.*]] = arith.constant dense<16> : vector<16xi32>
// CHECK-DAG:   %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:   %[[NANS:.*]] = arith.constant dense<0x7FC00000> : vector<16xf32>
// CHECK-DAG:   %[[ONES:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK:       %[[X:.*]] = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
// CHECK-NEXT:  %[[SIZE:.*]] = math.absf %[[X]] : vector<16xf32>
// CHECK-NEXT:  %[[SQRT:.*]] = math.sqrt %[[SIZE]] : vector<16xf32>
// CHECK-NEXT:  %[[NONE:.*]] = arith.cmpf ult, %[[X]], %[[ZEROS]] : vector<16xf32>
// CHECK-NEXT:  %[[SIGNED:.*]] = math.copysign %[[SQRT]], %[[X]] : vector<16xf32>
// CHECK-NEXT:  %[[ROOT:.*]] = arith.select %[[NONE]], %[[NANS]], %[[SIGNED]]
// CHECK-NEXT:  %[[R:.*]] = arith.divf %[[ONES]], %[[ROOT]] : vector<16xf32>
// CHECK-NEXT:  %[[IS:.*]] = arith.cmpf uno, %[[R]], %[[R]] : vector<16xf32>
// CHECK-NEXT:  %[[RAW:.*]] = arith.bitcast %[[R]] : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:  %[[BITS:.*]] = arith.select %[[IS]], %[[NAN]], %[[RAW]]
// CHECK-NEXT:  %[[HIGH:.*]] = arith.shrui %[[BITS]], %[[SIXTEEN]]
// CHECK-NEXT:  %[[ODD:.*]] = arith.andi %[[HIGH]], %[[ONE]]
// CHECK-NEXT:  %[[A:.*]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK-NEXT:  %[[B:.*]] = arith.addi %[[A]], %[[ODD]]
// CHECK-NEXT:  %[[C:.*]] = arith.shrui %[[B]], %[[SIXTEEN]]
// CHECK-NEXT:  %[[D:.*]] = arith.trunci %[[C]] : vector<16xi32> to vector<16xi16>
// CHECK-NEXT:  %[[F:.*]] = arith.bitcast %[[D]] : vector<16xi16> to vector<16xbf16>
// CHECK-NEXT:  vector.store %[[F]], %y[%c0]
comms.kernel @narrow(%x: memref<16xf32>, %y: memref<16xbf16>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %1 = math.rsqrt %0 fastmath<fast> : vector<16xf32>
  %2 = arith.truncf %1 : vector<16xf32> to vector<16xbf16>
  vector.store %2, %y[%c0] : memref<16xbf16>, vector<16xbf16>
  comms.return
}
