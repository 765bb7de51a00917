// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Places that depend on data, and what is known of them. The other rank writes its row here, and is not waited for;
// this rank reads in its own row, which nobody else writes.

// A check before it keeps it in the row.

comms.kernel @checked(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  comms.check_bounds "column" %i, %c1 in %c16
  %at = arith.addi %row, %i : index
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Without one it may be anywhere.

comms.kernel @not_checked(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  // expected-error @below {{writes [16, 32) of 'box' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them}}
  // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it, or by arith.minsi and arith.maxsi}}
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  %at = arith.addi %row, %i : index
  // expected-note @below {{the read}}
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The check is of one element, and two are read.

comms.kernel @checked_for_less(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  // expected-error @below {{writes [16, 17) of 'box' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them}}
  // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it, or by arith.minsi and arith.maxsi}}
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  comms.check_bounds "column" %i, %c1 in %c16
  %at = arith.addi %row, %i : index
  // expected-note @below {{the read}}
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<2xf32>
  %one = tensor.extract %tile[%c0] : tensor<2xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A check that may not have been made.

comms.kernel @checked_elsewhere(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  // expected-error @below {{writes [16, 32) of 'box' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them}}
  // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it, or by arith.minsi and arith.maxsi}}
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  %rare = arith.cmpi eq, %i, %c15 : index
  scf.if %rare {
    comms.check_bounds "column" %i, %c1 in %c16
    memref.store %data, %c[%c0] : memref<1xi32>
  }
  %at = arith.addi %row, %i : index
  // expected-note @below {{the read}}
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Minima and maxima.

comms.kernel @clamped(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %zero = arith.constant 0 : i32
  %last = arith.constant 15 : i32
  %low = arith.maxsi %data, %zero : i32
  %column = arith.minsi %low, %last : i32
  %i = arith.index_cast %column : i32 to index
  %at = arith.addi %row, %i : index
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Of one side alone: the next row is apart, the one before is not.

comms.kernel @clamped_above(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  // expected-note @+1 {{the write}}
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %last = arith.constant 15 : i32
  %column = arith.minsi %data, %last : i32
  %i = arith.index_cast %column : i32 to index
  %at = arith.addi %row, %i : index
  // expected-error @below {{reads [0, 16) of 'box' at rank 1 on rank 1 block 0 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them}}
  // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it, or by arith.minsi and arith.maxsi}}
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Remainders without a sign, masks, bytes, and what is made of them.

comms.kernel @remainder(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %byte = arith.trunci %data : i32 to i8
  %seven = arith.constant 7 : i8
  %low = arith.andi %byte, %seven : i8
  %c4 = arith.constant 4 : index
  %c2 = arith.constant 2 : index
  %wide = arith.extui %byte : i8 to i32
  %number = arith.index_castui %wide : i32 to index
  %four = arith.remui %number, %c4 : index
  %eight = arith.index_cast %low : i8 to index
  %half = arith.divui %eight, %c2 : index
  %twice = arith.muli %four, %c2 : index
  %sum = arith.addi %half, %twice : index
  %i = arith.addi %sum, %c4 : index
  %at = arith.addi %row, %i : index
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// What wraps around is anywhere.

comms.kernel @wrapped(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  // expected-error @below {{writes [16, 32) of 'box' at rank 0 on rank 1 block 0 in launch 1, with no order between it and the read by rank 0 block 0 in launch 1}}
  // expected-note @below {{order them}}
  // expected-note @below {{data decide the place, which may be any of these: bound it by comms.check_bounds before it, or by arith.minsi and arith.maxsi}}
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %hundred = arith.constant 100 : i8
  %byte = arith.trunci %data : i32 to i8
  %zero = arith.constant 0 : i8
  %positive = arith.maxsi %byte, %zero : i8
  %sum = arith.addi %positive, %hundred : i8
  %column = arith.subi %sum, %hundred : i8
  %some = arith.minsi %column, %hundred : i8
  %i = arith.index_cast %some : i8 to index
  %at = arith.addi %row, %i : index
  // expected-note @below {{the read}}
  %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
  %one = tensor.extract %tile[%c0] : tensor<1xf32>
  memref.store %one, %y[%c0] : memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The bounds of a loop.

comms.kernel @bounded_loop(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  %count = arith.minsi %i, %c16 : index
  scf.for %j = %c0 to %count step %c1 {
    %at = arith.addi %row, %j : index
    %tile = comms.tile_load %mine[%at] : memref<2x16xf32> -> tensor<1xf32>
    %one = tensor.extract %tile[%c0] : tensor<1xf32>
    memref.store %one, %y[%c0] : memref<1xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// A count that a check bounds, at a place that a check bounds.

comms.kernel @bounded_count(%box: !comms.window<2x16xf32>, %c: memref<1xi32>, %y: memref<1xf32>, %s: !comms.signal<2>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %world = comms.team world
  %me = comms.rank %world
  %other = arith.subi %c1, %me : index
  %row = arith.muli %me, %c16 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %there = comms.peer %box at %other of %world : !comms.window<2x16xf32> -> memref<2x16xf32>
  comms.tile_store %ones, %there[%row] : tensor<16xf32>, memref<2x16xf32>
  %mine = comms.local %box : !comms.window<2x16xf32> -> memref<2x16xf32>
  %data = memref.load %c[%c0] : memref<1xi32>
  %i = arith.index_cast %data : i32 to index
  comms.check_bounds "run" %c1, %i in %c16
  comms.check_bounds "column" %i, %c1 in %c1
  %at = arith.addi %row, %i : index
  comms.get %box[%at] to %y[%c0] count %i at %me of %world : !comms.window<2x16xf32>, memref<1xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A check ends the run in an iteration that would leave the row: its stores do
// not reach the rows of other blocks, however many iterations a scalar asks for.

comms.kernel @ended_by_a_check(%y: memref<2x32xf32>, %n: index) attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %block = comms.block_id
  %row = arith.muli %block, %c32 : index
  scf.for %j = %c0 to %n step %c16 {
    comms.check_bounds "column" %j, %c16 in %c32
    %at = arith.addi %row, %j : index
    comms.tile_store %ones, %y[%at] : tensor<16xf32>, memref<2x32xf32>
  }
  comms.return
}

// -----

// A check in one branch says nothing of the other, nor of what is behind them.

comms.kernel @checked_in_a_branch(%y: memref<64xf32>, %z: memref<64xf32>, %n: index) attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %block = comms.block_id
  %behind = arith.addi %block, %c32 : index
  %is_many = arith.cmpi sgt, %n, %c16 : index
  scf.if %is_many {
    comms.check_bounds "column" %behind, %c16 in %c32
    comms.tile_store %ones, %y[%behind] : tensor<16xf32>, memref<64xf32>
  } else {
    // expected-error @below {{writes [0, 16) of 'y' at rank 0 on rank 0 block 1 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
    // expected-note @below {{the write}}
    // expected-note @below {{order them}}
    comms.tile_store %ones, %y[%c0] : tensor<16xf32>, memref<64xf32>
  }
  // expected-error @below {{writes [0, 16) of 'z' at rank 0 on rank 0 block 1 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{the write}}
  // expected-note @below {{order them}}
  comms.tile_store %ones, %z[%c0] : tensor<16xf32>, memref<64xf32>
  comms.return
}
