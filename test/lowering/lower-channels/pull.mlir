// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse | FileCheck %s

// The tile stays with its sender; whoever wants it reads it after the barrier.
// CHECK-LABEL: comms.kernel @multicast
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<2x1x8x64xbf16>
// CHECK-SAME:  comms.hidden, comms.init = "zero"
comms.kernel @multicast(%x: memref<512xbf16>, %y: memref<512xbf16>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  // CHECK-DAG: %[[TEAM:.*]] = comms.team world
  %team = comms.team world
  %rank = comms.rank %team
  // The base of the buffer is found once, at the channel.
  // CHECK-DAG: %[[EPOCH:.*]] = comms.epoch
  // CHECK:     %[[TURN:.*]] = arith.remui %[[EPOCH]], %{{.*}}
  // CHECK:     %[[BUFFER:.*]] = arith.muli %[[TURN]], %c512
  // CHECK:     %[[OWN:.*]] = comms.local %[[WINDOW]]
  %ch = comms.channel 3 multicast over %team slots 8 : !comms.channel<pull, 64xbf16>
  %b = comms.block_id
  %n = comms.num_blocks
  // CHECK: scf.for %[[T:.*]] =
  scf.for %t = %b to %c8 step %n {
    // CHECK: %[[OFF:.*]] = arith.muli %[[T]], %c64
    %off = arith.muli %t, %c64 : index
    // CHECK: %[[TILE:.*]] = comms.tile_load
    %tile = comms.tile_load %x[%off] : memref<512xbf16> -> tensor<64xbf16>
    // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[BUFFER]], %[[OFF]]
    // CHECK-NEXT: comms.tile_store %[[TILE]], %[[OWN]][%[[AT]]]
    comms.send %tile on %ch[%t] : tensor<64xbf16>, !comms.channel<pull, 64xbf16>
  }
  // CHECK: comms.barrier %[[TEAM]] block{{$}}
  comms.channel_barrier %ch : !comms.channel<pull, 64xbf16>
  // CHECK: scf.for
  scf.for %t = %b to %c8 step %n {
    %off = arith.muli %t, %c64 : index
    // CHECK: %[[PART:.*]] = comms.peer %[[WINDOW]] at %{{.*}} of %[[TEAM]]
    // CHECK: comms.tile_load %[[PART]][%{{.*}}] : memref<2x1x8x64xbf16> -> tensor<64xbf16>
    %tile = comms.recv %ch[%t] from %c0 : !comms.channel<pull, 64xbf16> -> tensor<64xbf16>
    comms.tile_store %tile, %y[%off] : tensor<64xbf16>, memref<512xbf16>
  }
  // CHECK-NOT: comms.channel
  comms.return
}

// A row for each destination: the sender writes the row of the peer, and the
// receiver reads its own row of the peer's part.
// CHECK-LABEL: comms.kernel @pairwise
// CHECK-SAME:  %[[WINDOW:[^:, ]*]]: !comms.window<2x4x1x64xf32>
comms.kernel @pairwise(%x: memref<64xf32>, %peer: index, %n: index) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  // CHECK-DAG: %[[RANK:.*]] = comms.rank
  // CHECK:     %[[MINE:.*]] = arith.muli %[[RANK]], %c64
  // CHECK:     %[[OWNROW:.*]] = arith.addi %[[BUFFER:.*]], %[[MINE]]
  %ch = comms.channel 0 pairwise over %team slots 1 : !comms.channel<pull, 64xf32>
  %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  // CHECK: %[[THEIRS:.*]] = arith.muli %peer, %c64
  // CHECK: %[[ROW:.*]] = arith.addi %[[BUFFER]], %[[THEIRS]]
  // CHECK: comms.tile_store %{{.*}}, %{{.*}}[%[[ROW]]] valid %n
  comms.send %tile on %ch[%c0] to %peer valid %n : tensor<64xf32>, !comms.channel<pull, 64xf32>
  comms.channel_barrier %ch : !comms.channel<pull, 64xf32>
  // CHECK: comms.peer %[[WINDOW]] at %peer
  // CHECK: comms.tile_load %{{.*}}[%[[OWNROW]]] valid %n
  %got = comms.recv %ch[%c0] from %peer valid %n : !comms.channel<pull, 64xf32> -> tensor<64xf32>
  comms.tile_store %got, %x[%c0] valid %n : tensor<64xf32>, memref<64xf32>
  comms.return
}

// The team's ranks index rows, and the peer's part is found through the team.
// CHECK-LABEL: comms.kernel @subteam
// CHECK-SAME:  !comms.window<2x2x3x8xi32>
comms.kernel @subteam(%x: memref<8xi32>) attributes {ranks = 8 : i64, lsa_size = 4 : i64} {
  %c0 = arith.constant 0 : index
  %lsa = comms.team lsa
  // CHECK: %[[TEAM:.*]] = comms.team_split %{{.*}} outer 2
  %team = comms.team_split %lsa outer 2
  // CHECK: comms.rank %[[TEAM]]
  %ch = comms.channel 0 pairwise over %team slots 3 : !comms.channel<pull, 8xi32>
  // CHECK: comms.barrier %[[TEAM]] block{{$}}
  comms.channel_barrier %ch : !comms.channel<pull, 8xi32>
  // CHECK: comms.peer %{{.*}} at %{{.*}} of %[[TEAM]]
  %got = comms.recv %ch[%c0] from %c0 : !comms.channel<pull, 8xi32> -> tensor<8xi32>
  comms.tile_store %got, %x[%c0] : tensor<8xi32>, memref<8xi32>
  comms.return
}
