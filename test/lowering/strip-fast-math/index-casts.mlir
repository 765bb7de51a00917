// MLIR takes an index that is cast to any integer and back for the index.
// RUN: comms-opt %s -pass-pipeline='builtin.module(comms.kernel(comms-strip-fast-math,canonicalize))' | FileCheck %s

// CHECK-LABEL: comms.kernel @back
// CHECK:         %[[RANK:.*]] = comms.rank
// CHECK:         %[[WIDE:.*]] = arith.index_cast{{.*}} %[[RANK]] : index to i64
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[WIDE]] : i64 to i1
// CHECK:         %[[BACK:.*]] = arith.index_cast{{.*}} : i1 to index
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[BACK]]]
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[RANK]]]
comms.kernel @back(%y: memref<4xf32>) attributes {ranks = 4 : i64} {
  %one = arith.constant 1.0 : f32
  %team = comms.team world
  %rank = comms.rank %team
  %bit = arith.index_castui %rank : index to i1
  %odd = arith.index_castui %bit : i1 to index
  memref.store %one, %y[%odd] : memref<4xf32>
  %whole = arith.index_cast %rank : index to i64
  %same = arith.index_cast %whole : i64 to index
  memref.store %one, %y[%same] : memref<4xf32>
  comms.return
}
