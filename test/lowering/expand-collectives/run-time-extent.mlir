// Collectives whose number of elements each launch gives: loops and ends of arrays follow comms.extent, not the shape.
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives{ranks=4 blocks=2 algorithm=one_shot protocol=ll tile-size=64}),canonicalize,cse)' --split-input-file | FileCheck %s
// RUN: not comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-expand-collectives{ranks=4 blocks=2 algorithm=ring protocol=ll}))' --split-input-file 2>&1 | FileCheck %s --check-prefix=RING

// Any number: the last tile may be a part of one.
// CHECK-LABEL: comms.kernel @any
// CHECK-DAG: %[[SIZE:.*]] = arith.constant 64 : index
// CHECK: %[[EXTENT:.*]] = comms.extent most 1000
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %[[SIZE]] : index
// CHECK: scf.for %[[TILE:.*]] = %{{.*}} to %[[TILES]]
// CHECK: arith.subi %[[EXTENT]], %{{.*}} : index
// CHECK: valid
// RING: 'comms.all_reduce' op algorithm 'ring' cannot be used: its number of elements is known at launch only; use one_shot or two_shot
comms.kernel @any(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {comms.run_time_extent = 1 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}

// -----

// Whole tiles, and no more of them than blocks: no loop. The parts of the output lie one after the other.
// CHECK-LABEL: comms.kernel @whole
// CHECK: %[[EXTENT:.*]] = comms.extent most 128
// CHECK-NOT: valid
// CHECK: arith.muli %{{.*}}, %[[EXTENT]] : index
// CHECK-NOT: valid
// CHECK: comms.return
comms.kernel @whole(%x: memref<128xf32>, %y: memref<512xf32>) attributes {comms.run_time_extent = 64 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<128xf32>) outs(%y : memref<512xf32>)
  comms.return
}
