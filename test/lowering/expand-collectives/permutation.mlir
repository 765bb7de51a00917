// RUN: comms-opt %s -comms-expand-collectives="algorithm=permutation protocol=push tile-size=64" -canonicalize -cse -split-input-file | FileCheck %s

// Small: what goes to the owners is loaded together, and the sums go straight
// into the outputs of all, between two barriers.
// CHECK-LABEL: comms.kernel @small
// CHECK-SAME:  %[[Y:[^:, ]*]]: !comms.window<256xf32> {comms.host}
// CHECK: %[[CH:.*]] = comms.channel 0 pairwise over %{{.*}} slots 1 : <push, 64xf32>
// CHECK-COUNT-4: comms.tile_load
// CHECK-COUNT-4: comms.send
// CHECK: comms.channel_barrier %[[CH]]
// CHECK-NEXT: comms.barrier %{{.*}} block
// CHECK: comms.recv %[[CH]][%{{.*}}] from %c0
// CHECK: comms.recv %[[CH]][%{{.*}}] from %c1
// CHECK: comms.recv %[[CH]][%{{.*}}] from %c2
// CHECK: comms.recv %[[CH]][%{{.*}}] from %c3
// CHECK: scf.for
// CHECK: %[[PART:.*]] = comms.peer %[[Y]] at
// CHECK: comms.tile_store %{{.*}}, %[[PART]]
// CHECK: comms.barrier %{{.*}} block
// CHECK-NEXT: comms.return
comms.kernel @small(%x: !comms.window<256xf32>, %y: !comms.window<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<256xf32>) outs(%y : !comms.window<256xf32>)
  comms.return
}

// -----

// An output that is not a window is written by its own rank.
// CHECK-LABEL: comms.kernel @memory
// CHECK: comms.channel 0 pairwise
// CHECK: comms.channel 1 multicast
// CHECK-NOT: comms.peer
comms.kernel @memory(%x: memref<256xf32>, %y: memref<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<256xf32>) outs(%y : memref<256xf32>)
  comms.return
}

// -----

// Slots for one of four tiles of a part: four rounds, each ended by a barrier.
// CHECK-LABEL: comms.kernel @rounds
// CHECK: %[[CH:.*]] = comms.channel 0 pairwise over %{{.*}} slots 1 reused
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:   comms.channel_barrier %[[CH]]
// CHECK:   comms.barrier
// CHECK:   comms.recv %[[CH]]
// CHECK:   comms.barrier
// CHECK-NEXT: }
comms.kernel @rounds(%x: !comms.window<512xf32>, %y: !comms.window<512xf32>)
    attributes {ranks = 2 : i64, comms.round_bytes = 600 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<512xf32>) outs(%y : !comms.window<512xf32>)
  comms.return
}

// -----

// Large: a step a peer, a barrier between two. No channel: nothing is summed.
// CHECK-LABEL: comms.kernel @steps
// CHECK-NOT: comms.channel
// CHECK: comms.barrier
// CHECK: comms.peer
// CHECK: comms.barrier
// CHECK: comms.peer
// CHECK: comms.barrier
// CHECK: comms.peer
// CHECK: comms.barrier
// CHECK-NEXT: comms.return
comms.kernel @steps(%x: !comms.window<2097152xf32>, %y: !comms.window<8388608xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<2097152xf32>) outs(%y : !comms.window<8388608xf32>)
  comms.return
}

// -----

// What others still have to send may not be overwritten: through a channel.
// CHECK-LABEL: comms.kernel @in_place
// CHECK: comms.channel 0 pairwise
// CHECK-NOT: comms.peer
comms.kernel @in_place(%x: !comms.window<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<256xf32>) outs(%x : !comms.window<256xf32>)
  comms.return
}

// -----

// The next collective reads what other blocks wrote.
// CHECK-LABEL: comms.kernel @two
// CHECK: comms.barrier %{{.*}} grid
comms.kernel @two(%x: !comms.window<256xf32>, %y: !comms.window<256xf32>, %z: !comms.window<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<256xf32>) outs(%y : !comms.window<256xf32>)
  comms.all_reduce sum %team ins(%y : !comms.window<256xf32>) outs(%z : !comms.window<256xf32>)
  comms.return
}

// -----

// Copied late: what came in one step is received in the next, in parallel with its sends; the owner sends its sums
// from its own output. What came in the last step of a round is copied in the first step of the next
// round's sends, and that of the last round at the end.
// CHECK-LABEL: comms.kernel @late
// CHECK:      %[[CH:.*]] = comms.channel 0 pairwise over %{{.*}} slots 1 reused
// CHECK:      %[[SUMS:.*]] = comms.channel 1 pairwise over %{{.*}} slots 1 reused
// CHECK:      comms.channel_barrier %[[CH]]
// CHECK:        comms.recv %[[CH]][%{{.*}}] from %c2
// CHECK:        comms.send %[[SUM:.*]] on %[[SUMS]]
// CHECK:        comms.tile_store %[[SUM]], %y
// CHECK:        comms.channel_barrier %[[SUMS]]
// CHECK-NEXT:   comms.barrier
// CHECK:        %[[OWN:.*]] = comms.tile_load %y
// CHECK:        %[[CAME:.*]] = comms.recv %[[SUMS]]
// CHECK:        comms.send %[[OWN]] on %[[SUMS]]
// CHECK:        comms.tile_store %[[CAME]], %y
// CHECK:        comms.channel_barrier %[[SUMS]]
// CHECK-NEXT:   comms.barrier
// CHECK:        comms.tile_load %x
// CHECK:        %[[LAST:.*]] = comms.recv %[[SUMS]]
// CHECK:        comms.send %{{.*}} on %[[CH]]
// CHECK:        comms.tile_store %[[LAST]], %y
// CHECK:        comms.barrier %{{.*}} block order relaxed
// CHECK:        comms.channel_barrier %[[CH]]
// CHECK-NEXT:   comms.barrier %{{.*}} block
// CHECK:      comms.channel_barrier %[[SUMS]]
// CHECK:      comms.channel_barrier %[[SUMS]]
// CHECK:      comms.recv %[[SUMS]]
// CHECK-NOT:  comms.channel_barrier
// CHECK:      comms.return
comms.kernel @late(%x: memref<384xf32>, %y: memref<384xf32>)
    attributes {ranks = 3 : i64, comms.round_bytes = 800 : i64, comms.step_bytes = 0 : i64, comms.step_fence = 0 : i64, comms.late_copies = 1 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<384xf32>) outs(%y : memref<384xf32>)
  comms.return
}

// -----

// What goes into the own input is copied at once.
// CHECK-LABEL: comms.kernel @not_late
// CHECK:       comms.send
// CHECK:       comms.channel_barrier
// CHECK-NOT:   comms.send
// CHECK:       comms.recv
comms.kernel @not_late(%x: memref<384xf32>) attributes {ranks = 3 : i64, comms.step_bytes = 0 : i64, comms.late_copies = 1 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : memref<384xf32>) outs(%x : memref<384xf32>)
  comms.return
}

// -----

// Two tiles for each of two blocks are held: loaded before the first barrier,
// and not between steps.
// CHECK-LABEL: comms.kernel @held
// CHECK-COUNT-2: comms.tile_load
// CHECK-NOT:   comms.tile_load
// CHECK:       comms.barrier %{{.*}} block
// CHECK-COUNT-4: comms.tile_store
// CHECK:       comms.barrier %{{.*}} block order relaxed
// CHECK-COUNT-2: comms.tile_store
// CHECK:       comms.barrier %{{.*}} block
// CHECK-NEXT:  comms.return
comms.kernel @held(%x: !comms.window<256xf32>, %y: !comms.window<768xf32>)
    attributes {ranks = 3 : i64, blocks = 2 : i64, comms.step_bytes = 0 : i64, comms.step_fence = 0 : i64, comms.held_tiles = 2 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<256xf32>) outs(%y : !comms.window<768xf32>)
  comms.return
}

// -----

// Three tiles are too many, and not as many for each block.
// CHECK-LABEL: comms.kernel @not_held
// CHECK:       comms.barrier
// CHECK:       scf.for
// CHECK-NEXT:    arith
// CHECK:         comms.tile_load
comms.kernel @not_held(%x: !comms.window<192xf32>, %y: !comms.window<576xf32>)
    attributes {ranks = 3 : i64, blocks = 2 : i64, comms.step_bytes = 0 : i64, comms.held_tiles = 2 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<192xf32>) outs(%y : !comms.window<576xf32>)
  comms.return
}

// -----

// Of the five or six of eleven tiles that a block has, three are loaded before
// the first is stored; what then is left comes one by one.
// CHECK-LABEL: comms.kernel @batches
// CHECK:       comms.barrier
// CHECK:       scf.for
// CHECK-COUNT-3: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK-COUNT-6: comms.tile_store
// CHECK:       scf.for
// CHECK-COUNT-1: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK-COUNT-2: comms.tile_store
// CHECK:       comms.barrier
comms.kernel @batches(%x: !comms.window<704xf32>, %y: !comms.window<2112xf32>)
    attributes {ranks = 3 : i64, blocks = 2 : i64, comms.step_bytes = 0 : i64, comms.step_fence = 0 : i64, comms.batch_loads = 3 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<704xf32>) outs(%y : !comms.window<2112xf32>)
  comms.return
}

// -----

// Twelve tiles are two batches of three for each block, and none is left.
// CHECK-LABEL: comms.kernel @whole_batches
// CHECK:       comms.barrier
// CHECK:       scf.for
// CHECK-COUNT-3: comms.tile_load
// CHECK-NOT:     scf.for
// CHECK:       comms.barrier
comms.kernel @whole_batches(%x: !comms.window<768xf32>, %y: !comms.window<2304xf32>)
    attributes {ranks = 3 : i64, blocks = 2 : i64, comms.step_bytes = 0 : i64, comms.step_fence = 0 : i64, comms.batch_loads = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<768xf32>) outs(%y : !comms.window<2304xf32>)
  comms.return
}

// -----

// From 2 MiB a pair on, ranks keep in step, by barriers that order nothing.
// CHECK-LABEL: comms.kernel @steps_by_default
// CHECK:       comms.barrier %{{.*}} block{{$}}
// CHECK:       comms.barrier %{{.*}} block order relaxed
// CHECK:       comms.barrier %{{.*}} block{{$}}
// CHECK-NEXT:  comms.return
comms.kernel @steps_by_default(%x: !comms.window<524288xf32>, %y: !comms.window<1572864xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<524288xf32>) outs(%y : !comms.window<1572864xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @no_steps_by_default
// CHECK-NOT:   relaxed
// CHECK:       comms.return
comms.kernel @no_steps_by_default(%x: !comms.window<524287xf32>, %y: !comms.window<1572861xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<524287xf32>) outs(%y : !comms.window<1572861xf32>)
  comms.return
}

// -----

// What came in the first step is copied in parallel with the second's sends.
// CHECK-LABEL: comms.kernel @late_by_default
// CHECK:       comms.channel_barrier
// CHECK:       comms.send
// CHECK:       comms.channel_barrier
// CHECK:       comms.recv
// CHECK:       comms.return
comms.kernel @late_by_default(%x: memref<524288xf32>, %y: memref<1572864xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<524288xf32>) outs(%y : memref<1572864xf32>)
  comms.return
}
