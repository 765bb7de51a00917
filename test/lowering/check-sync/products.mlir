// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A product touches the rows and columns of its tile, not what lies between
// them: blocks may write next to each other.

comms.kernel @beside(%a: memref<32x8xbf16>, %b: memref<8x64xbf16>, %y: memref<32x64xf32>)
    attributes {ranks = 2 : i64, blocks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %block = comms.block_id
  %j = arith.muli %block, %c16 : index
  comms.contract %a[%c0, %c0], %b[%c0, %j] to %y[%c0, %j] tile [32, 16] depth %c8
    : memref<32x8xbf16>, memref<8x64xbf16>, memref<32x64xf32>
  comms.return
}

// -----

// Tiles of 24 columns at distances of 16 overlap.

comms.kernel @overlap(%a: memref<32x8xbf16>, %b: memref<8x64xbf16>, %y: memref<32x64xf32>)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %block = comms.block_id
  %j = arith.muli %block, %c16 : index
  // expected-error @below {{'comms.contract' op writes [16, 24) of 'y' at rank 0}}
  // expected-note @below {{}}
  comms.contract %a[%c0, %c0], %b[%c0, %j] to %y[%c0, %j] tile [32, 24] depth %c8
    : memref<32x8xbf16>, memref<8x64xbf16>, memref<32x64xf32>
  comms.return
}

// -----

// How many rows there are counts, too: the last tile is shorter.

comms.kernel @shorter(%a: memref<24x8xbf16>, %b: memref<8x64xbf16>, %y: memref<24x64xf32>)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %block = comms.block_id
  %i = arith.muli %block, %c16 : index
  %rest = arith.subi %c24, %i : index
  %rows = arith.minsi %rest, %c16 : index
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [16, 64] depth %c8 rows %rows
    : memref<24x8xbf16>, memref<8x64xbf16>, memref<24x64xf32>
  comms.return
}

// -----

// What a peer stores by a product is read behind its signal.

comms.kernel @signaled(%a: memref<16x8xbf16>, %b: memref<8x16xbf16>, %w: !comms.window<2x16x16xf32>,
                        %s: !comms.signal<1>, %y: memref<16xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %me = comms.rank %world
  %peer = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %half = arith.remui %epoch, %c2 : index
  %row = arith.muli %half, %c16 : index
  %part = comms.peer %w at %peer of %world : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %part[%row, %c0] tile [16, 16] depth %c8
    : memref<16x8xbf16>, memref<8x16xbf16>, memref<2x16x16xf32>
  comms.signal inc %s[%c0] at %peer of %world : !comms.signal<1>
  %until = arith.index_cast %epoch : index to i64
  %t = comms.wait_signal %s[%c0] ge %until : !comms.signal<1>
  %mine = comms.local %w : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  %at = arith.muli %half, %c256 : index
  %v = comms.tile_load %mine[%at] : memref<2x16x16xf32> -> tensor<16xf32>
  comms.tile_store %v, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.return
}

// -----

// The same with the signal before the product.

comms.kernel @early(%a: memref<16x8xbf16>, %b: memref<8x16xbf16>, %w: !comms.window<2x16x16xf32>,
                    %s: !comms.signal<1>, %y: memref<16xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %me = comms.rank %world
  %peer = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %part = comms.peer %w at %peer of %world : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  comms.signal inc %s[%c0] at %peer of %world : !comms.signal<1>
  // expected-note @below {{}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %part[%c0, %c0] tile [16, 16] depth %c8
    : memref<16x8xbf16>, memref<8x16xbf16>, memref<2x16x16xf32>
  %until = arith.index_cast %epoch : index to i64
  %t = comms.wait_signal %s[%c0] ge %until : !comms.signal<1>
  %mine = comms.local %w : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  // expected-error @below {{'comms.tile_load' op reads [0, 16) of 'w'}}
  // expected-note @below {{order them}}
  %v = comms.tile_load %mine[%c0] : memref<2x16x16xf32> -> tensor<16xf32>
  comms.tile_store %v, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.return
}

// -----

// How many rows there are is data: below the matrices there may be none, and in
// the second product there are none.

comms.kernel @rows_by_data(%in: memref<1xi64>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %given = memref.load %in[%c0] : memref<1xi64>
  %rows = arith.index_cast %given : i64 to index
  %a = comms.scratch : memref<16x16xbf16>
  %b = comms.scratch : memref<16x16xbf16>
  %c = comms.scratch : memref<16x16xf32>
  comms.contract %a[%c16, %c0], %b[%c0, %c0] to %c[%c16, %c0] tile [4, 4] depth %c2 rows %rows
    : memref<16x16xbf16>, memref<16x16xbf16>, memref<16x16xf32>
  comms.contract %a[%c16, %c0], %b[%c0, %c0] to %c[%c16, %c0] tile [4, 4] depth %c2 rows %c0
    : memref<16x16xbf16>, memref<16x16xbf16>, memref<16x16xf32>
  comms.return
}

// -----

// An addend is read, too: what the peer stores is added without waiting for it.

comms.kernel @addend(%a: memref<16x8xbf16>, %b: memref<8x16xbf16>, %w: !comms.window<2x16x16xf32>,
                     %s: !comms.signal<1>, %y: memref<16x16xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %me = comms.rank %world
  %peer = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %half = arith.remui %epoch, %c2 : index
  %row = arith.muli %half, %c16 : index
  %part = comms.peer %w at %peer of %world : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  %mine = comms.local %w : !comms.window<2x16x16xf32> -> memref<2x16x16xf32>
  // expected-error @below {{'comms.contract' op writes}}
  // expected-note @below {{order them}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %part[%row, %c0] tile [16, 16] depth %c8
    : memref<16x8xbf16>, memref<8x16xbf16>, memref<2x16x16xf32>
  comms.signal inc %s[%c0] at %peer of %world : !comms.signal<1>
  // expected-note @below {{the read}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %y[%c0, %c0] tile [16, 16] depth %c8 plus %mine[%row, %c0]
    : memref<16x8xbf16>, memref<8x16xbf16>, memref<16x16xf32> plus memref<2x16x16xf32>
  %until = arith.index_cast %epoch : index to i64
  %t = comms.wait_signal %s[%c0] ge %until : !comms.signal<1>
  comms.return
}

// -----

// Scales are read, too: those of the product's rows where each row has its own.
// What the peer stores for other rows is not in the way; for these it is.

comms.kernel @scales(%a: memref<32x128xf8E4M3FN>, %b: memref<16x128xf8E4M3FN>, %w: !comms.window<2x16x1xf32>, %t: memref<1x1xf32>,
                     %s: !comms.signal<1>, %y: memref<16x16xf32>, %z: memref<16x16xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %me = comms.rank %world
  %peer = arith.subi %c1, %me : index
  %part = comms.peer %w at %peer of %world : !comms.window<2x16x1xf32> -> memref<2x16x1xf32>
  %mine = comms.local %w : !comms.window<2x16x1xf32> -> memref<2x16x1xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @below {{'comms.tile_store' op writes [16, 32) of 'w'}}
  // expected-note @below {{order them}}
  comms.tile_store %one, %part[%c16] : tensor<16xf32>, memref<2x16x1xf32>
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %z[%c0, %c0] tile [16, 16] depth %c128 scaled by %mine, %t {transpose_rhs}
    : memref<32x128xf8E4M3FN>, memref<16x128xf8E4M3FN>, memref<16x16xf32> scaled by memref<2x16x1xf32>, memref<1x1xf32>
  // expected-note @below {{the read}}
  comms.contract %a[%c16, %c0], %b[%c0, %c0] to %y[%c0, %c0] tile [16, 16] depth %c128 scaled by %mine, %t {transpose_rhs}
    : memref<32x128xf8E4M3FN>, memref<16x128xf8E4M3FN>, memref<16x16xf32> scaled by memref<2x16x1xf32>, memref<1x1xf32>
  comms.barrier %world grid
  comms.return
}

// -----

// A product is not written where its operands are, whatever the views are: rows
// 16 to 24 are both, in scratch memory as a whole and by rows.

comms.kernel @in_place(%b: memref<8x8xf32>, %w: !comms.window<32x8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %one = comms.local %w : !comms.window<32x8xf32> -> memref<32x8xf32>
  %other = comms.local %w : !comms.window<32x8xf32> -> memref<32x8xf32>
  comms.contract %one[%c0, %c0], %b[%c0, %c0] to %other[%c16, %c0] tile [16, 8] depth %c8
    : memref<32x8xf32>, memref<8x8xf32>, memref<32x8xf32>
  // expected-error @below {{'comms.contract' op reads elements that it writes itself, on rank 0 block 0 in launch 1, of [64, 72) of 'w' at rank 0}}
  // expected-note @below {{give the product other rows or columns, or memory of its own}}
  comms.contract %one[%c0, %c0], %b[%c0, %c0] to %other[%c8, %c0] tile [16, 8] depth %c8
    : memref<32x8xf32>, memref<8x8xf32>, memref<32x8xf32>
  %own = comms.scratch : memref<4x8x8xf32>
  %rows = memref.collapse_shape %own [[0, 1], [2]] : memref<4x8x8xf32> into memref<32x8xf32>
  // expected-error @below {{'comms.contract' op reads elements that it writes itself, on rank 0 block 0 in launch 1, of scratch memory}}
  // expected-note @below {{give the product other rows or columns, or memory of its own}}
  comms.contract %rows[%c0, %c0], %b[%c0, %c0] to %own[%c8, %c0] tile [16, 8] depth %c8
    : memref<32x8xf32>, memref<8x8xf32>, memref<4x8x8xf32>
  comms.return
}

// -----

// Columns lie next to those that are read.

comms.kernel @beside_itself(%b: memref<8x8xf32>, %w: !comms.window<32x16xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %one = comms.local %w : !comms.window<32x16xf32> -> memref<32x16xf32>
  %other = comms.local %w : !comms.window<32x16xf32> -> memref<32x16xf32>
  comms.contract %one[%c0, %c0], %b[%c0, %c0] to %other[%c0, %c8] tile [32, 8] depth %c8
    : memref<32x16xf32>, memref<8x8xf32>, memref<32x16xf32>
  comms.return
}

// -----

// Where data say which rows an addend has, it may be where the product is.

comms.kernel @perhaps_in_place(%a: memref<8x8xf32>, %w: !comms.window<32x8xf32>, %in: memref<1xi64>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  %given = memref.load %in[%c0] : memref<1xi64>
  %any = arith.index_cast %given : i64 to index
  %above = arith.maxsi %any, %c0 : index
  %row = arith.minsi %above, %c24 : index
  %one = comms.local %w : !comms.window<32x8xf32> -> memref<32x8xf32>
  %other = comms.local %w : !comms.window<32x8xf32> -> memref<32x8xf32>
  // expected-remark @below {{may read elements that it writes itself, where data say; give the product memory of its own}}
  comms.contract %a[%c0, %c0], %a[%c0, %c0] to %other[%c8, %c0] tile [8, 8] depth %c8 plus %one[%row, %c0]
    : memref<8x8xf32>, memref<8x8xf32>, memref<32x8xf32> plus memref<32x8xf32>
  comms.return
}

// -----

// A scalar says how many rows there are: no more than the tile has, each where
// its tile is.

comms.kernel @rows_by_scalar(%a: memref<32x8xbf16>, %b: memref<8x64xbf16>, %y: memref<32x64xf32>, %n: index)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %block = comms.block_id
  %i = arith.muli %block, %c16 : index
  %rest = arith.subi %n, %i : index
  %rows = arith.minsi %rest, %c16 : index
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [16, 64] depth %c8 rows %rows
    : memref<32x8xbf16>, memref<8x64xbf16>, memref<32x64xf32>
  comms.return
}

// -----

// Tiles of up to 24 rows at distances of 16 may overlap.

comms.kernel @rows_that_overlap(%a: memref<64x8xbf16>, %b: memref<8x64xbf16>, %y: memref<64x64xf32>, %n: index)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %block = comms.block_id
  %i = arith.muli %block, %c16 : index
  %rest = arith.subi %n, %i : index
  %rows = arith.minsi %rest, %c24 : index
  // expected-error @below {{'comms.contract' op writes [1024, 1536) of 'y' at rank 0}}
  // expected-note @below {{}}
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [24, 64] depth %c8 rows %rows
    : memref<64x8xbf16>, memref<8x64xbf16>, memref<64x64xf32>
  comms.return
}

// -----

// A part has no columns behind the last one of its memory, whatever the scalar
// is that ends the loop.

comms.kernel @columns_by_scalar(%a: memref<16x8xbf16>, %b: memref<8x32xbf16>, %y: memref<16x32xf32>, %n: index)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %block = comms.block_id
  %i = arith.muli %block, %c8 : index
  scf.for %j = %c0 to %n step %c16 {
    %rest = arith.subi %n, %j : index
    %columns = arith.minsi %rest, %c16 : index
    comms.contract %a[%i, %c0], %b[%c0, %j] to %y[%i, %j] tile [8, 16] depth %c8 columns %columns
      : memref<16x8xbf16>, memref<8x32xbf16>, memref<16x32xf32>
  }
  comms.return
}

// -----

// Columns and rows that a matrix does not have.

comms.kernel @outside(%a: memref<16x8xbf16>, %b: memref<8x32xbf16>, %y: memref<16x32xf32>, %z: memref<20x32xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c48 = arith.constant 48 : index
  scf.for %j = %c0 to %c48 step %c16 {
    // expected-error @below {{'comms.contract' op reads columns [32, 48) of 'b', which has 32, on rank 0 block 0 in launch 1}}
    // expected-note @below {{shorten the last tile with `columns`}}
    comms.contract %a[%c0, %c0], %b[%c0, %j] to %y[%c0, %j] tile [16, 16] depth %c8
      : memref<16x8xbf16>, memref<8x32xbf16>, memref<16x32xf32>
  }
  scf.for %i = %c0 to %c24 step %c8 {
    // expected-error @below {{'comms.contract' op writes rows [16, 24) of 'z', which has 20, on rank 0 block 0 in launch 1}}
    // expected-note @below {{shorten the last tile with `rows`}}
    comms.contract %a[%c0, %c0], %b[%c0, %c0] to %z[%i, %c0] tile [8, 32] depth %c8
      : memref<16x8xbf16>, memref<8x32xbf16>, memref<20x32xf32>
  }
  comms.return
}

// -----

// A scalar says how many rows of its operand a product overwrites: rows 8 to 32
// in the first, none in the second, whose rows are behind them.

comms.kernel @rows_in_place(%b: memref<8x8xf32>, %w: !comms.window<64x8xf32>, %n: index) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %rows = arith.minsi %n, %c32 : index
  %one = comms.local %w : !comms.window<64x8xf32> -> memref<64x8xf32>
  %other = comms.local %w : !comms.window<64x8xf32> -> memref<64x8xf32>
  // expected-remark @below {{may read elements that it writes itself, where data say; give the product memory of its own}}
  comms.contract %one[%c0, %c0], %b[%c0, %c0] to %other[%c8, %c0] tile [32, 8] depth %c8 rows %rows
    : memref<64x8xf32>, memref<8x8xf32>, memref<64x8xf32>
  comms.contract %one[%c0, %c0], %b[%c0, %c0] to %other[%c32, %c0] tile [32, 8] depth %c8 rows %rows
    : memref<64x8xf32>, memref<8x8xf32>, memref<64x8xf32>
  comms.return
}

// -----

// Scalars say how many tiles of rows and of columns there are, of which there
// are at most 2 and 4: all are followed, also in the inner loop.

comms.kernel @tiles_by_scalars(%a: memref<32x8xbf16>, %b: memref<8x64xbf16>, %y: memref<32x64xf32>, %m: index, %n: index)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %block = comms.block_id
  %i0 = arith.muli %block, %c8 : index
  %most_rows = arith.minsi %m, %c32 : index
  %most_columns = arith.minsi %n, %c64 : index
  scf.for %i = %i0 to %most_rows step %c16 {
    scf.for %j = %c0 to %most_columns step %c16 {
      comms.contract %a[%i, %c0], %b[%c0, %j] to %y[%i, %j] tile [8, 16] depth %c8
        : memref<32x8xbf16>, memref<8x64xbf16>, memref<32x64xf32>
    }
  }
  comms.return
}
