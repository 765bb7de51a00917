// RUN: comms-opt %s --canonicalize | FileCheck %s
// RUN: comms-opt %s --int-range-optimizations --canonicalize | FileCheck %s --check-prefix=RANGE

func.func private @use(index)
func.func private @see(tensor<8xf32>)
func.func private @keep(!comms.team)

// Sizes follow from the kernel's ranks and lsa_size, and from the splits.
// CHECK-LABEL: comms.kernel @sizes
comms.kernel @sizes() attributes {ranks = 16 : i64, lsa_size = 8 : i64} {
  // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
  // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  %w = comms.team world
  %l = comms.team lsa
  %r = comms.team rail
  %i = comms.team_split %l inner 4
  %o = comms.team_split %w outer 4
  %x = comms.team_split %i outer 2
  // CHECK: call @use(%[[C16]])
  %0 = comms.size %w
  func.call @use(%0) : (index) -> ()
  // CHECK: call @use(%[[C8]])
  %1 = comms.size %l
  func.call @use(%1) : (index) -> ()
  // CHECK: call @use(%[[C2]])
  %2 = comms.size %r
  func.call @use(%2) : (index) -> ()
  // CHECK: call @use(%[[C4]])
  %3 = comms.size %i
  func.call @use(%3) : (index) -> ()
  // CHECK: call @use(%[[C4]])
  %4 = comms.size %o
  func.call @use(%4) : (index) -> ()
  // CHECK: call @use(%[[C2]])
  %5 = comms.size %x
  func.call @use(%5) : (index) -> ()
  comms.return
}

// Without ranks only what a split or lsa_size fixes is known.
// CHECK-LABEL: comms.kernel @unknown
comms.kernel @unknown() attributes {lsa_size = 8 : i64} {
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  %w = comms.team world
  %l = comms.team lsa
  %i = comms.team_split %w inner 4
  %o = comms.team_split %w outer 4
  // CHECK: %[[W:.*]] = comms.size
  // CHECK: call @use(%[[W]])
  %0 = comms.size %w
  func.call @use(%0) : (index) -> ()
  // CHECK: call @use(%[[C8]])
  %1 = comms.size %l
  func.call @use(%1) : (index) -> ()
  // CHECK: call @use(%[[C4]])
  %2 = comms.size %i
  func.call @use(%2) : (index) -> ()
  // CHECK: %[[O:.*]] = comms.size
  // CHECK: call @use(%[[O]])
  %3 = comms.size %o
  func.call @use(%3) : (index) -> ()
  comms.return
}

// A split that leaves the team whole is the team; a team of one has rank 0.
// CHECK-LABEL: comms.kernel @splits
comms.kernel @splits() attributes {ranks = 8 : i64} {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[W:.*]] = comms.team world
  %w = comms.team world
  %i = comms.team_split %w inner 8
  %o = comms.team_split %w outer 1
  // CHECK: %[[H:.*]] = comms.team_split %[[W]] inner 4
  %h = comms.team_split %w inner 4
  %alone = comms.team_split %w outer 8
  // CHECK: call @keep(%[[W]])
  func.call @keep(%i) : (!comms.team) -> ()
  // CHECK: call @keep(%[[W]])
  func.call @keep(%o) : (!comms.team) -> ()
  // CHECK: call @keep(%[[H]])
  func.call @keep(%h) : (!comms.team) -> ()
  // CHECK: call @use(%[[C0]])
  %r = comms.rank %alone
  func.call @use(%r) : (index) -> ()
  comms.return
}

// CHECK-LABEL: comms.kernel @translate
comms.kernel @translate(%p: index) attributes {ranks = 8 : i64} {
  %w = comms.team world
  // CHECK: %[[L:.*]] = comms.team lsa
  %v = comms.team world
  %l = comms.team lsa
  // CHECK: call @use(%p)
  %0 = comms.translate_rank %p from %w to %v
  func.call @use(%0) : (index) -> ()
  // CHECK: %[[R:.*]] = comms.rank %[[L]]
  // CHECK: call @use(%[[R]])
  %r = comms.rank %v
  %1 = comms.translate_rank %r from %w to %l
  func.call @use(%1) : (index) -> ()
  // CHECK: %[[T:.*]] = comms.translate_rank %p
  // CHECK: call @use(%[[T]])
  %2 = comms.translate_rank %p from %w to %l
  func.call @use(%2) : (index) -> ()
  comms.return
}

// CHECK-LABEL: comms.kernel @tiles
comms.kernel @tiles(%row: memref<1xf32>) {
  // CHECK-DAG: %[[S:.*]] = arith.constant dense<2.500000e+00> : tensor<8xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<1.500000e+00> : tensor<8xf32>
  %c = arith.constant 2.5 : f32
  %d = arith.constant dense<1.5> : tensor<1xf32>
  %c0 = arith.constant 0 : index
  // CHECK: call @see(%[[S]])
  %0 = comms.splat %c : f32 -> tensor<8xf32>
  func.call @see(%0) : (tensor<8xf32>) -> ()
  // CHECK: call @see(%[[B]])
  %1 = comms.broadcast_row %d : tensor<1xf32> -> tensor<8xf32>
  func.call @see(%1) : (tensor<8xf32>) -> ()
  // CHECK: %[[L:.*]] = comms.tile_load
  // CHECK: comms.tile_store %[[L]]
  %2 = comms.tile_load %row[%c0] : memref<1xf32> -> tensor<1xf32>
  %3 = comms.broadcast_row %2 : tensor<1xf32> -> tensor<1xf32>
  comms.tile_store %3, %row[%c0] : tensor<1xf32>, memref<1xf32>
  // Nothing is folded into a tile of unknown length.
  // CHECK: comms.splat
  %4 = comms.splat %c : f32 -> tensor<?xf32>
  %5 = comms.row_reduce sum %4 : tensor<?xf32> -> tensor<1xf32>
  comms.tile_store %5, %row[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

func.func private @bit(i1)

// Comparisons with the bounds of ranks, blocks and epochs are decided.
// RANGE-LABEL: comms.kernel @ranges
comms.kernel @ranges(%p: index) attributes {ranks = 8 : i64, blocks = 4 : i64} {
  // RANGE-DAG: %[[TRUE:.*]] = arith.constant true
  // RANGE-DAG: %[[FALSE:.*]] = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %w = comms.team world
  %h = comms.team_split %w inner 4
  %r = comms.rank %w
  // RANGE: call @bit(%[[TRUE]])
  %0 = arith.cmpi slt, %r, %c8 : index
  func.call @bit(%0) : (i1) -> ()
  // RANGE: %[[OPEN:.*]] = arith.cmpi
  // RANGE: call @bit(%[[OPEN]])
  %1 = arith.cmpi slt, %r, %c7 : index
  func.call @bit(%1) : (i1) -> ()
  // Any number, since %p may be no rank.
  // RANGE: %[[ANY:.*]] = arith.cmpi
  // RANGE: call @bit(%[[ANY]])
  %t = comms.translate_rank %p from %w to %h
  %2 = arith.cmpi slt, %t, %c4 : index
  func.call @bit(%2) : (i1) -> ()
  // RANGE: call @bit(%[[FALSE]])
  %b = comms.block_id
  %3 = arith.cmpi sge, %b, %c4 : index
  func.call @bit(%3) : (i1) -> ()
  // RANGE: call @bit(%[[TRUE]])
  %n = comms.num_blocks
  %4 = arith.cmpi eq, %n, %c4 : index
  func.call @bit(%4) : (i1) -> ()
  // RANGE: call @bit(%[[FALSE]])
  %e = comms.epoch
  %5 = arith.cmpi slt, %e, %c1 : index
  func.call @bit(%5) : (i1) -> ()
  // RANGE: comms.role
  comms.role "late" blocks 1 to 3 {
    // RANGE: func.call @bit(%[[TRUE]])
    %a = comms.block_id
    %6 = arith.cmpi sgt, %a, %c0 : index
    func.call @bit(%6) : (i1) -> ()
  }
  comms.return
}
