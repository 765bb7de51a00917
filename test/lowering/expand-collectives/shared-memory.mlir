// Collectives of one kernel that share memory.
// RUN: comms-opt %s -split-input-file -verify-diagnostics --comms-expand-collectives="protocol=ll algorithm=one_shot" --canonicalize --cse | FileCheck %s

// The same block has the same elements in both: no barrier.
// CHECK-LABEL: comms.kernel @same_tiles
// CHECK-NOT: comms.barrier
// CHECK: comms.channel 1
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @same_tiles(%x: memref<1024xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%x : memref<1024xf32>)
  comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%x : memref<1024xf32>)
  comms.return
}

// -----

// Other blocks wrote what the second one reads.
// CHECK-LABEL: comms.kernel @other_tiles
// CHECK: comms.channel 0
// CHECK: comms.tile_store %{{.*}}, %y
// CHECK: comms.barrier %{{.*}} grid
// CHECK: comms.channel 1
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @other_tiles(%x: memref<1024xf32>, %y: memref<1024xf32>, %z: memref<512xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%y : memref<1024xf32>)
  comms.reduce_scatter sum %team ins(%y : memref<1024xf32>) outs(%z : memref<512xf32>)
  comms.return
}

// -----

// Both only read.
// CHECK-LABEL: comms.kernel @readers
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @readers(%x: memref<1024xf32>, %y: memref<1024xf32>, %z: memref<512xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%y : memref<1024xf32>)
  comms.reduce_scatter sum %team ins(%x : memref<1024xf32>) outs(%z : memref<512xf32>)
  comms.return
}

// -----

// The blocks of a role have other tiles than all blocks have.
// CHECK-LABEL: comms.kernel @into_a_role
// CHECK: comms.tile_store %{{.*}}, %y
// CHECK: comms.barrier %{{.*}} grid
// CHECK: comms.role
comms.kernel @into_a_role(%x: memref<1024xf32>, %y: memref<1024xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%y : memref<1024xf32>)
  comms.role "again" blocks 2 to 4 {
    comms.all_reduce sum %team ins(%y : memref<1024xf32>) outs(%y : memref<1024xf32>)
  }
  comms.return
}

// -----

comms.kernel @in_a_role(%x: memref<1024xf32>, %y: memref<1024xf32>, %z: memref<512xf32>) attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %team = comms.team world
  comms.role "both" blocks 0 to 2 {
    comms.all_reduce sum %team ins(%x : memref<1024xf32>) outs(%y : memref<1024xf32>)
    // expected-error @+1 {{shares memory with the all_reduce before it, but its tiles belong to other blocks}}
    comms.reduce_scatter sum %team ins(%y : memref<1024xf32>) outs(%z : memref<512xf32>)
  }
  comms.return
}
