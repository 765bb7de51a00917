// RUN: comms-opt %s -split-input-file --comms-expand-collectives="algorithm=two_shot protocol=pull" --canonicalize --cse | FileCheck %s

// The owner folds in rank order, rounds once, and uses what it sends.
// CHECK-LABEL: comms.kernel @all_reduce
// CHECK: tile = 16 : i64, tiles = 6 : i64
// CHECK: %[[RANK:.*]] = comms.rank
// CHECK: %[[TO:.*]] = comms.channel 0 pairwise over %{{.*}} slots 2 : <pull, 16xbf16>
// CHECK: %[[ALL:.*]] = comms.channel 1 multicast over %{{.*}} slots 2 : <pull, 16xbf16>
// CHECK: scf.for %[[T:.*]] =
// CHECK:   %[[TURN:.*]] = arith.divui %[[T]], %c4
// CHECK:   %[[SHIFTED:.*]] = arith.addi %[[T]], %[[TURN]]
// CHECK:   %[[OWNER:.*]] = arith.remui %[[SHIFTED]], %c4
// CHECK:   comms.send %{{.*}} on %[[TO]][%[[TURN]]] to %[[OWNER]]
// CHECK: comms.channel_barrier %[[TO]]
// CHECK: scf.for %[[T:.*]] =
// CHECK:   scf.if
// CHECK:     comms.recv %[[TO]][%[[TURN:.*]]] from %c0
// CHECK:     comms.recv %[[TO]][%[[TURN]]] from %c1
// CHECK:     comms.recv %[[TO]][%[[TURN]]] from %c2
// CHECK:     comms.recv %[[TO]][%[[TURN]]] from %c3
// CHECK:     %[[ROUNDED:.*]] = arith.truncf %{{.*}} : tensor<16xf32> to tensor<16xbf16>
// CHECK:     comms.send %[[ROUNDED]] on %[[ALL]][%[[TURN]]]
// CHECK: comms.channel_barrier %[[ALL]]
// CHECK: scf.for
// CHECK:   %[[GOT:.*]] = comms.recv %[[ALL]][%{{.*}}] from %{{.*}} -> tensor<16xbf16>
// CHECK:   %[[WIDE:.*]] = arith.extf %[[GOT]] : tensor<16xbf16> to tensor<16xf32>
// CHECK:   comms.tile_store %[[WIDE]], %y
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @all_reduce(%x: memref<96xbf16>, %y: memref<96xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<96xbf16>) outs(%y : memref<96xf32>)
  comms.return
}

// -----

// Sums of i8 travel as i32 where somebody sees all of their bits, a wider output …
// CHECK-LABEL: comms.kernel @integers
// CHECK: comms.channel 0 pairwise over %{{.*}} : <pull, 16xi8>
// CHECK: comms.channel 1 multicast over %{{.*}} : <pull, 16xi32>
comms.kernel @integers(%x: memref<16xi8>, %y: memref<16xi32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16xi8>) outs(%y : memref<16xi32>)
  comms.return
}

// -----

// … or the division of an average …
// CHECK-LABEL: comms.kernel @average_of_integers
// CHECK: comms.channel 1 multicast over %{{.*}} : <pull, 16xi32>
comms.kernel @average_of_integers(%x: memref<16xi8>, %y: memref<16xi8>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce avg %team ins(%x : memref<16xi8>) outs(%y : memref<16xi8>)
  comms.return
}

// -----

// … or a region; else as i8, for integers wrap.
// CHECK-LABEL: comms.kernel @region_of_integers
// CHECK: comms.channel 1 multicast over %{{.*}} : <pull, 16xi32>
// CHECK-LABEL: comms.kernel @narrow_integers
// CHECK: comms.channel 1 multicast over %{{.*}} : <pull, 16xi8>
comms.kernel @region_of_integers(%x: memref<16xi8>, %y: memref<16xi8>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16xi8>) outs(%y : memref<16xi8>)
    consume(%sum: tensor<16xi32>) {
      %two = arith.constant dense<2> : tensor<16xi32>
      %less = arith.shrsi %sum, %two : tensor<16xi32>
      %narrow = arith.trunci %less : tensor<16xi32> to tensor<16xi8>
      comms.yield %narrow : tensor<16xi8>
    }
  comms.return
}
comms.kernel @narrow_integers(%x: memref<16xi8>, %y: memref<16xi8>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16xi8>) outs(%y : memref<16xi8>)
  comms.return
}

// -----

// Many ranks: tiles are small enough for every rank to own one.
// CHECK-LABEL: comms.kernel @many
// CHECK-SAME: tile = 16 : i64, tiles = 1024 : i64
comms.kernel @many(%x: memref<16384xf32>, %y: memref<16384xf32>) attributes {ranks = 1024 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16384xf32>) outs(%y : memref<16384xf32>)
  comms.return
}

// -----

// Scatter to the owners, then all-gather.
// CHECK-LABEL: comms.kernel @broadcast
// CHECK: %[[TO:.*]] = comms.channel 0 pairwise
// CHECK: %[[ALL:.*]] = comms.channel 1 multicast
// CHECK: scf.if
// CHECK:   comms.send %{{.*}} on %[[TO]]
// CHECK: comms.channel_barrier %[[TO]]
// CHECK: %[[TILE:.*]] = comms.recv %[[TO]][%{{.*}}] from %c1
// CHECK: comms.send %[[TILE]] on %[[ALL]]
// CHECK: comms.channel_barrier %[[ALL]]
// CHECK: comms.recv %[[ALL]]
// CHECK: comms.barrier %{{.*}} block
comms.kernel @broadcast(%x: memref<96xbf16>, %y: memref<96xbf16>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.broadcast root 1 %team ins(%x : memref<96xbf16>) outs(%y : memref<96xbf16>)
  comms.return
}

// -----

// Where the ranks divide the blocks, a block has tiles of every owner in turn,
// and goes straight to its own.
// CHECK-LABEL: comms.kernel @turns
// CHECK: %[[RANK:.*]] = comms.rank
// CHECK: %[[BLOCK:.*]] = comms.block_id
// CHECK: %[[BLOCKS:.*]] = comms.num_blocks
// CHECK: scf.for %[[T:.*]] = %[[BLOCK]] to %{{.*}} step %[[BLOCKS]]
// CHECK:   %[[SHIFT:.*]] = arith.divui %[[T]], %[[BLOCKS]]
// CHECK:   %[[SHIFTED:.*]] = arith.addi %[[T]], %[[SHIFT]]
// CHECK:   %[[OWNER:.*]] = arith.remui %[[SHIFTED]], %c4
// CHECK:   comms.send %{{.*}} to %[[OWNER]]
// CHECK: %[[PLACE:.*]] = arith.remui %[[BLOCK]], %c4
// CHECK: %[[BEHIND:.*]] = arith.subi %c4, %[[PLACE]]
// CHECK: %[[AFTER:.*]] = arith.addi %[[RANK]], %[[BEHIND]]
// CHECK: %[[TURN:.*]] = arith.remui %[[AFTER]], %c4
// CHECK: %[[SKIPPED:.*]] = arith.muli %[[TURN]], %[[BLOCKS]]
// CHECK: %[[FIRST:.*]] = arith.addi %[[BLOCK]], %[[SKIPPED]]
// CHECK: %[[STEP:.*]] = arith.muli %[[BLOCKS]], %c4
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK-NOT: scf.if
// CHECK: comms.return
comms.kernel @turns(%x: memref<64x8xbf16>, %y: memref<64x8xf32>) attributes {ranks = 4 : i64, blocks = 8 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<64x8xbf16>) outs(%y : memref<64x8xf32>)
  comms.return
}
