// EXEC: comms.team comms.team_split comms.translate_rank comms.rank comms.size
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 8 \
// RUN:   'y = np.array([r % 4, 4, r // 4, 2, r % 2, 2, r // 2, 4, r % 4 // 2, 2, r % 4, r // 2], np.int32)'
// RUN: comms-run %s --ranks 8 --expect y=%t/y-%r.npy --quiet

// Rank and size in each team; the reach of load and store is 4 of 8 ranks.
comms.kernel @teams(%y: memref<12xi32>) attributes {lsa_size = 4 : i64} {
  %world = comms.team world
  %lsa = comms.team lsa
  %rail = comms.team rail
  %pair = comms.team_split %world inner 2
  %odd = comms.team_split %world outer 2
  %part = comms.team_split %lsa outer 2
  %r0 = comms.rank %lsa
  %n0 = comms.size %lsa
  %r1 = comms.rank %rail
  %n1 = comms.size %rail
  %r2 = comms.rank %pair
  %n2 = comms.size %pair
  %r3 = comms.rank %odd
  %n3 = comms.size %odd
  %r4 = comms.rank %part
  %n4 = comms.size %part
  // The neighbor across the rail, as a rank of the world.
  %zero = arith.constant 0 : index
  %head = comms.translate_rank %zero from %rail to %world
  %mine = comms.rank %world
  %back = comms.translate_rank %mine from %world to %odd
  %o0 = arith.constant 0 : index
  %i0 = arith.index_cast %r0 : index to i32
  %t0 = comms.splat %i0 : i32 -> tensor<1xi32>
  comms.tile_store %t0, %y[%o0] : tensor<1xi32>, memref<12xi32>
  %o1 = arith.constant 1 : index
  %i1 = arith.index_cast %n0 : index to i32
  %t1 = comms.splat %i1 : i32 -> tensor<1xi32>
  comms.tile_store %t1, %y[%o1] : tensor<1xi32>, memref<12xi32>
  %o2 = arith.constant 2 : index
  %i2 = arith.index_cast %r1 : index to i32
  %t2 = comms.splat %i2 : i32 -> tensor<1xi32>
  comms.tile_store %t2, %y[%o2] : tensor<1xi32>, memref<12xi32>
  %o3 = arith.constant 3 : index
  %i3 = arith.index_cast %n1 : index to i32
  %t3 = comms.splat %i3 : i32 -> tensor<1xi32>
  comms.tile_store %t3, %y[%o3] : tensor<1xi32>, memref<12xi32>
  %o4 = arith.constant 4 : index
  %i4 = arith.index_cast %r2 : index to i32
  %t4 = comms.splat %i4 : i32 -> tensor<1xi32>
  comms.tile_store %t4, %y[%o4] : tensor<1xi32>, memref<12xi32>
  %o5 = arith.constant 5 : index
  %i5 = arith.index_cast %n2 : index to i32
  %t5 = comms.splat %i5 : i32 -> tensor<1xi32>
  comms.tile_store %t5, %y[%o5] : tensor<1xi32>, memref<12xi32>
  %o6 = arith.constant 6 : index
  %i6 = arith.index_cast %r3 : index to i32
  %t6 = comms.splat %i6 : i32 -> tensor<1xi32>
  comms.tile_store %t6, %y[%o6] : tensor<1xi32>, memref<12xi32>
  %o7 = arith.constant 7 : index
  %i7 = arith.index_cast %n3 : index to i32
  %t7 = comms.splat %i7 : i32 -> tensor<1xi32>
  comms.tile_store %t7, %y[%o7] : tensor<1xi32>, memref<12xi32>
  %o8 = arith.constant 8 : index
  %i8 = arith.index_cast %r4 : index to i32
  %t8 = comms.splat %i8 : i32 -> tensor<1xi32>
  comms.tile_store %t8, %y[%o8] : tensor<1xi32>, memref<12xi32>
  %o9 = arith.constant 9 : index
  %i9 = arith.index_cast %n4 : index to i32
  %t9 = comms.splat %i9 : i32 -> tensor<1xi32>
  comms.tile_store %t9, %y[%o9] : tensor<1xi32>, memref<12xi32>
  %o10 = arith.constant 10 : index
  %i10 = arith.index_cast %head : index to i32
  %t10 = comms.splat %i10 : i32 -> tensor<1xi32>
  comms.tile_store %t10, %y[%o10] : tensor<1xi32>, memref<12xi32>
  %o11 = arith.constant 11 : index
  %i11 = arith.index_cast %back : index to i32
  %t11 = comms.splat %i11 : i32 -> tensor<1xi32>
  comms.tile_store %t11, %y[%o11] : tensor<1xi32>, memref<12xi32>
  comms.return
}
