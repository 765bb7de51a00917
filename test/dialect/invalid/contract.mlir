// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: memory without rows.
comms.kernel @k(%a: memref<64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C1: the left operand is 'memref<64xbf16>'; a matrix has two dimensions or more, all of them known}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C1: a dimension that is not known.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<?x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C1: the right operand is}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<?x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C1: strided memory.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %whole: memref<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c = memref.subview %whole[0, 0] [8, 32] [1, 1] : memref<8x64xf32> to memref<8x32xf32, strided<[64, 1]>>
  // expected-error @+1 {{C1: the product is 'memref<8x32xf32, strided<[64, 1]>>', which is not contiguous}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32, strided<[64, 1]>>
  comms.return
}

// -----

// C2: two types.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C2: a product of elements of 'bf16' and 'f16'; both are bf16, f16 or f32, or each f8E4M3FN or f8E5M2}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xf16>, memref<8x32xf32>
  comms.return
}

// -----

// C2: integers.
comms.kernel @k(%a: memref<8x64xi8>, %b: memref<64x32xi8>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C2: a product of elements of 'i8' and 'i8'}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xi8>, memref<64x32xi8>, memref<8x32xf32>
  comms.return
}

// -----

// C3.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf64>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C3: the product has elements of 'f64'; store it as f32, bf16 or f16}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf64>
  comms.return
}

// -----

// C4: one number.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C4: the tile is [8]; give its rows and columns, of at most 1048576 elements}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C4: a number below 1.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C4: the tile is [0, 32]}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [0, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C4: too many elements.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C4: the tile is [4096, 4096]}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [4096, 4096] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C5: more rows than the tile.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  // expected-error @+1 {{C5: `rows` is 9 of a tile that has 8}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 rows %c9 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C5: a negative depth.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = arith.constant -1 : index
  // expected-error @+1 {{C5: `depth` is -1; it must be at least 0}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %m : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C6: beyond the columns.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %far = arith.constant 60 : index
  // expected-error @+1 {{C6: 8 elements from offset 60 leave the left operand, counted by columns, which has 64 elements}}
  comms.contract %a[%c0, %far], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C6: beyond the rows.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C6: 8 elements from offset 8 leave the product, counted by rows, which has 8 elements}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c8, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32>
  comms.return
}

// -----

// C7.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C7: the product is stored in the memory of an operand; give it memory of its own}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %a[%c0, %c0] tile [8, 32] depth %c8 : memref<8x64xbf16>, memref<64x64xbf16>, memref<8x64xbf16>
  comms.return
}

// -----

// C7: an addend.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C7: the product is stored in the memory of an operand; give it memory of its own}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 plus %c[%c0, %c0]
    : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32> plus memref<8x32xf32>
  comms.return
}

// -----

// C8: elements.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>, %d: memref<8x32xi32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C8: an addend has elements of 'i32'; they are f32, bf16 or f16}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 plus %d[%c0, %c0]
    : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32> plus memref<8x32xi32>
  comms.return
}

// -----

// C6 of an addend.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>, %d: memref<8x32xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C6: 32 elements from offset 8 leave the addend, counted by columns, which has 32 elements}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 plus %d[%c0, %c8]
    : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32> plus memref<8x32xf16>
  comms.return
}

// -----

// C1 of an addend.
comms.kernel @k(%a: memref<8x64xbf16>, %b: memref<64x32xbf16>, %c: memref<8x32xf32>, %d: memref<32xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{C1: the addend is 'memref<32xf16>'; a matrix has two dimensions or more, all of them known}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c8 plus %d[%c0, %c0]
    : memref<8x64xbf16>, memref<64x32xbf16>, memref<8x32xf32> plus memref<32xf16>
  comms.return
}

// -----

// C9: scales of what is no fp8.
comms.kernel @k(%a: memref<8x256xbf16>, %b: memref<256x160xbf16>, %c: memref<8x160xf32>, %as: memref<1x1xf32>, %bs: memref<1x1xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C9: scales of a product of elements of 'bf16'; operands of fp8 have scales}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xbf16>, memref<256x160xbf16>, memref<8x160xf32> scaled by memref<1x1xf32>, memref<1x1xf32>
  comms.return
}

// -----

// C9: elements.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<1x1xf32>, %bs: memref<1x1xbf16>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C9: the scale matrix of the right operand has elements of 'bf16'; they are f32}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<1x1xf32>, memref<1x1xbf16>
  comms.return
}

// -----

// C1 of scales.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8xf32>, %bs: memref<1x1xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C1: the scale matrix of the left operand is 'memref<8xf32>'; a matrix has two dimensions or more}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8xf32>, memref<1x1xf32>
  comms.return
}

// -----

// C10: too few along the terms.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8x3xf32>, %bs: memref<1x1xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C10: the scales of the left operand are 'memref<8x3xf32>', of 'memref<8x256xf8E4M3FN>'; give 1 or 2 along its terms, and 1 or 8 along its rows}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8x3xf32>, memref<1x1xf32>
  comms.return
}

// -----

// C10: one for each term.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<1x1xf32>, %bs: memref<256x1xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C10: the scales of the right operand are 'memref<256x1xf32>', of 'memref<256x160xf8E4M3FN>'; give 1 or 2 along its terms, and 1, 2 or 160 along its columns}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<1x1xf32>, memref<256x1xf32>
  comms.return
}

// -----

// C10: across the terms.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8x2xf32>, %bs: memref<2x3xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C10: the scales of the right operand are 'memref<2x3xf32>'}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8x2xf32>, memref<2x3xf32>
  comms.return
}

// -----

// C10: scales that lie the other way.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<2x8xf32>, %bs: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C10: the scales of the left operand are 'memref<2x8xf32>'}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<2x8xf32>, memref<2x2xf32>
  comms.return
}

// -----

// C10: none at all.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8x0xf32>, %bs: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C10: the scales of the left operand are 'memref<8x0xf32>'}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8x0xf32>, memref<2x2xf32>
  comms.return
}

// -----

// C11.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8x2xf32>, %bs: memref<1x1xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C11: the left operand begins with term 64, within a block of scales; begin with a multiple of 128}}
  comms.contract %a[%c0, %c64], %b[%c64, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %as, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8x2xf32>, memref<1x1xf32>
  comms.return
}

// -----

// C9: one operand without scales.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %as: memref<8x2xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C9: only the left operand has scales; give those of both, or one of 1.0 for an operand without}}
  "comms.contract"(%a, %c0, %c0, %b, %c0, %c0, %c, %c0, %c0, %c64, %as)
    <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0>, tile = array<i64: 8, 32>}>
    : (memref<8x256xf8E4M3FN>, index, index, memref<256x160xf8E4M3FN>, index, index, memref<8x160xf32>, index, index, index, memref<8x2xf32>) -> ()
  comms.return
}

// -----

// C7: scales.
comms.kernel @k(%a: memref<8x256xf8E4M3FN>, %b: memref<256x160xf8E4M3FN>, %c: memref<8x160xf32>, %bs: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @+1 {{C7: the product is stored in the memory of an operand; give it memory of its own}}
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [8, 32] depth %c64 scaled by %c, %bs
    : memref<8x256xf8E4M3FN>, memref<256x160xf8E4M3FN>, memref<8x160xf32> scaled by memref<8x160xf32>, memref<2x2xf32>
  comms.return
}
