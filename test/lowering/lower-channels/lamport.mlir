// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// What launch k - 1 received is cleared before launch k polls.
// CHECK-LABEL: comms.kernel @multicast
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<3x4x8x64xf32>
// CHECK-SAME:  comms.hidden, comms.init = "poison"
comms.kernel @multicast(%x: memref<500xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c500 = arith.constant 500 : index
  %team = comms.team world
  // CHECK-DAG: %[[EPOCH:.*]] = comms.epoch
  // CHECK-DAG: %[[TURN:.*]] = arith.remui %[[EPOCH]], %c3
  // CHECK-DAG: %[[BUFFER:.*]] = arith.muli %[[TURN]], %c2048
  // CHECK-DAG: %[[LATER:.*]] = arith.addi %[[TURN]], %c2
  // CHECK-DAG: %[[LAST:.*]] = arith.remui %[[LATER]], %c3
  // CHECK-DAG: %[[STALE:.*]] = arith.muli %[[LAST]], %c2048
  // CHECK:     %[[OWN:.*]] = comms.local %[[WINDOW]]
  %ch = comms.channel 0 multicast over %team slots 8 : !comms.channel<lamport, 64xf32>
  %b = comms.block_id
  %n = comms.num_blocks
  scf.for %t = %b to %c8 step %n {
    %off = arith.muli %t, %c64 : index
    %left = arith.subi %c500, %off : index
    %valid = arith.minsi %left, %c64 : index
    %tile = comms.tile_load %x[%off] valid %valid : memref<500xf32> -> tensor<64xf32>
    // CHECK: scf.for %{{.*}} = %c1 to %c5
    // CHECK: comms.poison_store %{{.*}}, %{{.*}}[%{{.*}}] valid %{{.*}}
    comms.send %tile on %ch[%t] valid %valid : tensor<64xf32>, !comms.channel<lamport, 64xf32>
    // CHECK: scf.for %[[P:.*]] = %c0 to %c4
    scf.for %p = %c0 to %c4 step %c1 {
      // CHECK:      %[[SOURCE:.*]] = arith.muli %[[P]], %c512
      // CHECK-NEXT: %[[OLDROW:.*]] = arith.addi %[[STALE]], %[[SOURCE]]
      // CHECK-NEXT: %[[OLD:.*]] = arith.addi %[[OLDROW]], %[[OFF:.*]] : index
      // CHECK-NEXT: comms.poison_fill %[[OWN]][%[[OLD]]] count %[[VALID:.*]] {comms.stale} :
      // CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[BUFFER]], %[[SOURCE]]
      // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[ROW]], %[[OFF]]
      // CHECK-NEXT: comms.poison_load %[[OWN]][%[[AT]]] valid %[[VALID]]
      // CHECK-NOT:  comms.poison_fill
      %got = comms.recv %ch[%t] from %p valid %valid : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
      comms.tile_store %got, %x[%off] valid %valid : tensor<64xf32>, memref<500xf32>
    }
  }
  comms.return
}

// The extent may differ between launches: this launch's is cleared after the
// read, at the same place.
// CHECK-LABEL: comms.kernel @by_argument
comms.kernel @by_argument(%x: memref<64xf32>, %n: index) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 8 : !comms.channel<lamport, 64xf32>
  // CHECK-NOT:  comms.poison_fill
  // CHECK:      comms.poison_load %[[OWN:.*]][%[[AT:.*]]] valid %n
  // CHECK-NEXT: comms.poison_fill %[[OWN]][%[[AT]]] count %n
  %got = comms.recv %ch[%c0] from %c0 valid %n : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
  comms.tile_store %got, %x[%c0] valid %n : tensor<64xf32>, memref<64xf32>
  comms.return
}

// So may be whether anything is received, where it depends on an argument,
// on memory or on the launch's number …
// CHECK-LABEL: comms.kernel @by_condition
comms.kernel @by_condition(%x: memref<64xf32>, %on: i1, %rows: memref<2xi64>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %ch = comms.channel 0 pairwise over %team slots 8 : !comms.channel<lamport, 64xf32>
  // CHECK: scf.if %on
  scf.if %on {
    // CHECK-NOT:  comms.poison_fill
    // CHECK:      comms.poison_load
    // CHECK-NEXT: comms.poison_fill
    %got = comms.recv %ch[%c0] from %c0 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    comms.tile_store %got, %x[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %rows0 = memref.load %rows[%c0] : memref<2xi64>
  %end = arith.index_cast %rows0 : i64 to index
  // CHECK: scf.for
  scf.for %t = %c0 to %end step %c1 {
    // CHECK-NOT:  comms.poison_fill
    // CHECK:      comms.poison_load
    // CHECK-NEXT: comms.poison_fill
    %got = comms.recv %ch[%t] from %c0 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    comms.tile_store %got, %x[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %epoch = comms.epoch
  %two = arith.constant 2 : index
  %slot = arith.remui %epoch, %two : index
  // CHECK: }
  // CHECK-NOT:  comms.poison_fill
  // CHECK:      comms.poison_load
  // CHECK:      comms.poison_fill
  %got = comms.recv %ch[%slot] from %c1 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
  comms.tile_store %got, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// … but not where it depends on the rank.
// CHECK-LABEL: comms.kernel @by_rank
comms.kernel @by_rank(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %rank = comms.rank %team
  %ch = comms.channel 0 pairwise over %team slots 8 : !comms.channel<lamport, 64xf32>
  %root = arith.cmpi eq, %rank, %c0 : index
  // CHECK: scf.if
  scf.if %root {
    // CHECK: comms.poison_fill
    // CHECK: comms.poison_load
    // CHECK-NOT: comms.poison_fill
    %got = comms.recv %ch[%c0] from %c0 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    comms.tile_store %got, %x[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
}
