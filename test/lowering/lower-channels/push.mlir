// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// A multicast tile goes to the row of its sender at every rank, the sender
// included; receivers read at home behind the barrier.
// CHECK-LABEL: comms.kernel @multicast
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<2x4x8x64xbf16>
// CHECK-SAME:  comms.hidden, comms.init = "zero"
comms.kernel @multicast(%x: memref<512xbf16>, %y: memref<512xbf16>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  // CHECK-DAG: %[[TEAM:.*]] = comms.team world
  %team = comms.team world
  // CHECK-DAG: %[[RANK:.*]] = comms.rank
  // CHECK:     %[[BUFFER:.*]] = arith.muli %{{.*}}, %c2048
  // CHECK:     %[[MINE:.*]] = arith.muli %[[RANK]], %c512
  // CHECK:     %[[ROW:.*]] = arith.addi %[[BUFFER]], %[[MINE]]
  // CHECK:     %[[OWN:.*]] = comms.local %[[WINDOW]]
  %ch = comms.channel 3 multicast over %team slots 8 : !comms.channel<push, 64xbf16>
  %b = comms.block_id
  %n = comms.num_blocks
  // CHECK: scf.for %[[T:.*]] =
  scf.for %t = %b to %c8 step %n {
    %off = arith.muli %t, %c64 : index
    // CHECK: %[[TILE:.*]] = comms.tile_load
    %tile = comms.tile_load %x[%off] : memref<512xbf16> -> tensor<64xbf16>
    // CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %{{.*}}
    // CHECK: scf.for
    // CHECK: %[[PART:.*]] = comms.peer %[[WINDOW]] at %{{.*}} of %[[TEAM]]
    // CHECK: comms.tile_store %[[TILE]], %[[PART]][%[[AT]]]
    comms.send %tile on %ch[%t] : tensor<64xbf16>, !comms.channel<push, 64xbf16>
  }
  // CHECK: comms.barrier %[[TEAM]] block{{$}}
  comms.channel_barrier %ch : !comms.channel<push, 64xbf16>
  // CHECK: scf.for
  scf.for %t = %b to %c8 step %n {
    %off = arith.muli %t, %c64 : index
    // CHECK: comms.tile_load %[[OWN]][%{{.*}}] : memref<2x4x8x64xbf16> -> tensor<64xbf16>
    %tile = comms.recv %ch[%t] from %c0 : !comms.channel<push, 64xbf16> -> tensor<64xbf16>
    comms.tile_store %tile, %y[%off] : tensor<64xbf16>, memref<512xbf16>
  }
  // CHECK-NOT: comms.channel
  comms.return
}

// One row suffices where a rank hears from one rank.
// CHECK-LABEL: comms.kernel @single
// CHECK-SAME:  !comms.window<2x1x1x64xf32>
comms.kernel @single(%x: memref<64xf32>, %peer: index, %n: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %ch = comms.channel 0 single over %team slots 1 : !comms.channel<push, 64xf32>
  // CHECK: %[[TILE:.*]] = comms.tile_load
  %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  // CHECK: %[[PART:.*]] = comms.peer %{{.*}} at %peer of
  // CHECK: comms.tile_store %[[TILE]], %[[PART]][%[[BUFFER:.*]]] valid %n
  comms.send %tile on %ch[%c0] to %peer valid %n : tensor<64xf32>, !comms.channel<push, 64xf32>
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  // CHECK: comms.tile_load %{{.*}}[%[[BUFFER]]] valid %n
  %r = comms.recv %ch[%c0] from %peer valid %n : !comms.channel<push, 64xf32> -> tensor<64xf32>
  comms.tile_store %r, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// The rows of a pairwise channel over a team of two, whose slots are used in
// every round.
// CHECK-LABEL: comms.kernel @pairs
// CHECK-SAME:  !comms.window<2x2x3x64xf32>
comms.kernel @pairs(%x: memref<64xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  // CHECK: %[[PAIR:.*]] = comms.team_split
  %pair = comms.team_split %world inner 2
  %ch = comms.channel 0 pairwise over %pair slots 3 reused : !comms.channel<push, 64xf32>
  %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  // CHECK: comms.peer %{{.*}} at %c0 of %[[PAIR]]
  comms.send %tile on %ch[%c0] to %c0 : tensor<64xf32>, !comms.channel<push, 64xf32>
  // CHECK: comms.barrier %[[PAIR]] block{{$}}
  comms.channel_barrier %ch : !comms.channel<push, 64xf32>
  comms.return
}
