// Who sends what to whom, for each collective.
// RUN: comms-opt %s -split-input-file --comms-expand-collectives="algorithm=one_shot protocol=ll" --canonicalize --cse | FileCheck %s

// More than 8 ranks are folded in a loop, in rank order; avg divides once.
// CHECK-LABEL: comms.kernel @all_reduce
// CHECK: %[[CH:.*]] = comms.channel 0 multicast over %{{.*}} slots 1 : <ll, 96xbf16>
// CHECK: comms.send
// CHECK: comms.channel_barrier %[[CH]]
// CHECK: %[[FIRST:.*]] = comms.recv %[[CH]][%[[T:.*]]] from %c0
// CHECK: %[[ACC:.*]] = arith.extf %[[FIRST]] : tensor<96xbf16> to tensor<96xf32>
// CHECK: %[[SUM:.*]] = scf.for %[[P:.*]] = %c1 to %c9 step %c1 iter_args(%[[PART:.*]] = %[[ACC]])
// CHECK:   %[[NEXT:.*]] = comms.recv %[[CH]][%[[T]]] from %[[P]]
// CHECK:   %[[WIDE:.*]] = arith.extf %[[NEXT]]
// CHECK:   %[[ADDED:.*]] = arith.addf %[[PART]], %[[WIDE]]
// CHECK:   scf.yield %[[ADDED]]
// CHECK: %[[AVG:.*]] = arith.divf %[[SUM]], %{{.*}} : tensor<96xf32>
// CHECK: %[[OUT:.*]] = arith.truncf %[[AVG]] : tensor<96xf32> to tensor<96xbf16>
// CHECK: comms.tile_store %[[OUT]]
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @all_reduce(%x: memref<90xbf16>, %y: memref<90xbf16>) attributes {ranks = 9 : i64} {
  %team = comms.team world
  comms.all_reduce avg %team ins(%x : memref<90xbf16>) outs(%y : memref<90xbf16>)
  comms.return
}

// -----

// Part p of the input goes to rank p; the tail of a part has `valid`.
// CHECK-LABEL: comms.kernel @reduce_scatter
// CHECK: %[[RANK:.*]] = comms.rank
// CHECK: comms.channel 0 pairwise over %{{.*}} slots 2 : <ll, 256xi8>
// CHECK: scf.for %[[T:.*]] =
// CHECK:   scf.for %[[I:.*]] = %c0 to %c2
// CHECK:     %[[PEER:.*]] = arith.remui %{{.*}}, %c2
// CHECK:     %[[PART:.*]] = arith.muli %[[PEER]], %c300
// CHECK:     %[[OFFSET:.*]] = arith.addi %[[PART]]
// CHECK:     %[[VALID:.*]] = arith.minui %{{.*}}, %c256
// CHECK:     comms.tile_load %x[%[[OFFSET]]] valid %[[VALID]]
// CHECK:     comms.send %{{.*}} to %[[PEER]] valid %[[VALID]]
// CHECK: comms.channel_barrier
// CHECK: arith.extsi %{{.*}} : tensor<256xi8> to tensor<256xi32>
// CHECK: arith.maxsi
// CHECK: arith.trunci %{{.*}} : tensor<256xi32> to tensor<256xi8>
// CHECK: comms.tile_store %{{.*}} valid
comms.kernel @reduce_scatter(%x: memref<600xi8>, %y: memref<300xi8>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.reduce_scatter max %team ins(%x : memref<600xi8>) outs(%y : memref<300xi8>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @all_gather
// CHECK: comms.channel 0 multicast over %{{.*}} slots 1 : <ll, 128xf32>
// CHECK: comms.send
// CHECK: comms.channel_barrier
// CHECK: scf.for %[[P:.*]] = %c0 to %c4
// CHECK:   %[[TILE:.*]] = comms.recv %{{.*}} from %[[P]]
// CHECK:   %[[PART:.*]] = arith.muli %[[P]], %c128
// CHECK:   comms.tile_store %[[TILE]]
// CHECK-NOT: comms.barrier
// CHECK: comms.return
comms.kernel @all_gather(%x: memref<2x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<2x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @all_to_all
// CHECK: comms.channel 0 pairwise over %{{.*}} slots 1 : <ll, 128xf32>
// CHECK: comms.send %{{.*}} to %
// CHECK: comms.channel_barrier
// CHECK: scf.for %[[P:.*]] = %c0 to %c4
// CHECK:   comms.recv %{{.*}} from %[[P]]
comms.kernel @all_to_all(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_to_all %team ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}

// -----

// The root hears nothing back: a barrier keeps it from running ahead, whose
// halves stand around all the rest, so that nobody waits for it.
// CHECK-LABEL: comms.kernel @broadcast
// CHECK: comms.channel 0 multicast
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: %[[ROOT:.*]] = arith.cmpi eq, %{{.*}}, %c2
// CHECK: scf.if %[[ROOT]]
// CHECK:   comms.send
// CHECK: comms.channel_barrier
// CHECK: comms.recv %{{.*}} from %c2
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @broadcast(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.broadcast root 2 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @reduce
// CHECK: comms.channel 0 pairwise
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: comms.send %{{.*}} to %c1
// CHECK: comms.channel_barrier
// CHECK: scf.if
// CHECK:   comms.recv %{{.*}} from %c0
// CHECK:   comms.recv %{{.*}} from %c1
// CHECK:   arith.minimumf
// CHECK:   comms.tile_store
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @reduce(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.reduce min root 1 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @gather
// CHECK: comms.channel 0 pairwise
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: comms.send %{{.*}} to %c0
// CHECK: comms.channel_barrier
// CHECK: scf.if
// CHECK:   scf.for
// CHECK:     scf.for %[[P:.*]] = %c0 to %c3
// CHECK:       comms.recv %{{.*}} from %[[P]]
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @gather(%x: memref<16xf32>, %y: memref<48xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.gather root 0 %team ins(%x : memref<16xf32>) outs(%y : memref<48xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @scatter
// CHECK: comms.channel 0 pairwise
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: scf.if
// CHECK:   comms.send %{{.*}} to %
// CHECK: comms.channel_barrier
// CHECK: comms.recv %{{.*}} from %c0
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @scatter(%x: memref<48xf32>, %y: memref<16xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.scatter root 0 %team ins(%x : memref<48xf32>) outs(%y : memref<16xf32>)
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @send_recv
// CHECK: comms.channel 0 single
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: scf.if
// CHECK:   comms.send %{{.*}} to %c1
// CHECK: comms.channel_barrier
// CHECK: scf.if
// CHECK:   comms.recv %{{.*}} from %c2
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @send_recv(%x: memref<48xf32>, %y: memref<48xf32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.send_recv %team from 2 to 1 ins(%x : memref<48xf32>) outs(%y : memref<48xf32>)
  comms.return
}

// -----

// Rows start where those of the ranks before end; their number is checked. Every
// slot is visited, with no element where there is no row.
// CHECK-LABEL: comms.kernel @all_to_all_v
// CHECK: comms.channel 0 pairwise over %{{.*}} slots 5 {comms.counts_agree} : <ll, 24xf32>
// CHECK: %[[ARRIVED:.*]] = comms.barrier_arrive %{{.*}} block order relaxed
// CHECK: scf.for %[[P:.*]] = %c0 to %c3 step %c1 iter_args(%[[START:.*]] = %c0)
// CHECK:   %[[COUNT:.*]] = memref.load %s[%[[P]]]
// CHECK:   %[[ROWS:.*]] = arith.index_cast %[[COUNT]]
// CHECK:   comms.check_bounds "send_rows of all_to_all_v" %c0, %[[ROWS]] in %c5
// CHECK:   scf.for %[[SLOT:.*]] = %{{.*}} to %c5
// CHECK:     %[[THERE:.*]] = arith.cmpi ult, %[[SLOT]], %[[ROWS]]
// CHECK:     %[[ROW:.*]] = arith.addi %[[START]], %[[SLOT]]
// CHECK:     %[[PLACE:.*]] = arith.muli %[[ROW]], %c24
// CHECK:     %[[OFFSET:.*]] = arith.select %[[THERE]], %[[PLACE]], %c0
// CHECK:     %[[VALID:.*]] = arith.select %[[THERE]], %c24, %c0
// CHECK:     comms.tile_load %x[%[[OFFSET]]] valid %[[VALID]]
// CHECK:     comms.send %{{.*}}[%[[SLOT]]] to %[[P]] valid %[[VALID]]
// CHECK:   %[[END:.*]] = arith.addi %[[START]], %[[ROWS]]
// CHECK:   scf.yield %[[END]]
// CHECK: comms.channel_barrier
// CHECK: memref.load %r
// CHECK: comms.recv %{{.*}} valid
// CHECK: comms.tile_store %{{.*}} valid
// CHECK: comms.barrier_wait %[[ARRIVED]] order relaxed
comms.kernel @all_to_all_v(%x: memref<9x24xf32>, %y: memref<15x24xf32>, %s: memref<3xi32>, %r: memref<3xi32>) attributes {ranks = 3 : i64} {
  %team = comms.team world
  comms.all_to_all_v %team ins(%x : memref<9x24xf32>) outs(%y : memref<15x24xf32>)
      send_rows(%s : memref<3xi32>) recv_rows(%r : memref<3xi32>) max_rows 5
  comms.return
}

// -----

// In a role, tiles are dealt to the blocks of the role.
// CHECK-LABEL: comms.kernel @role
// CHECK: %[[ID:.*]] = comms.block_id
// CHECK: %[[BLOCK:.*]] = arith.subi %[[ID]], %c4
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %c1 step %c3
comms.kernel @role(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64, blocks = 7 : i64} {
  %team = comms.team world
  comms.role "sum" blocks 4 to 7 {
    comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  comms.return
}
