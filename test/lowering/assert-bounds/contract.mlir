// RUN: comms-opt %s -comms-assert-bounds | FileCheck %s

// Rows and columns have bounds each; what is proven needs no check.
// CHECK-LABEL: comms.kernel @proven
// CHECK-NOT: check_bounds
// CHECK: comms.contract
comms.kernel @proven(%a: memref<32x24xbf16>, %b: memref<24x48xbf16>, %y: memref<32x48xf32>) attributes {blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %block = comms.block_id
  %i = arith.muli %block, %c16 : index
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [16, 48] depth %c24
    : memref<32x24xbf16>, memref<24x48xbf16>, memref<32x48xf32>
  comms.return
}

// CHECK-LABEL: comms.kernel @checked
// CHECK: comms.check_bounds "rows of a tile" %{{.*}}, %rows in
// CHECK: comms.check_bounds "read of a, counted by rows" %i, %rows in
// CHECK: comms.check_bounds "read of a, counted by columns" %{{.*}}, %depth in
// CHECK: comms.check_bounds "read of b, counted by rows" %{{.*}}, %depth in
// CHECK: comms.check_bounds "write of y, counted by rows"
// CHECK: comms.contract
comms.kernel @checked(%a: memref<32x24xbf16>, %b: memref<24x48xbf16>, %y: memref<32x48xf32>, %i: index, %rows: index, %depth: index) {
  %c0 = arith.constant 0 : index
  comms.contract %a[%i, %c0], %b[%c0, %c0] to %y[%i, %c0] tile [16, 48] depth %depth rows %rows
    : memref<32x24xbf16>, memref<24x48xbf16>, memref<32x48xf32>
  comms.return
}

// CHECK-LABEL: comms.kernel @addend
// CHECK: comms.check_bounds "read of d, counted by rows" %i, %{{.*}} in
// CHECK: comms.contract
comms.kernel @addend(%a: memref<32x24xbf16>, %b: memref<24x48xbf16>, %d: memref<2x16x48xbf16>, %y: memref<32x48xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c24 = arith.constant 24 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %y[%c0, %c0] tile [16, 48] depth %c24 plus %d[%i, %c0]
    : memref<32x24xbf16>, memref<24x48xbf16>, memref<32x48xf32> plus memref<2x16x48xbf16>
  comms.return
}

// Scales have the rows of the product; block scales begin with multiples of 128
// terms.
// CHECK-LABEL: comms.kernel @scales
// CHECK: comms.check_bounds "read of p, counted by rows" %i, %{{.*}} in
// CHECK-NOT: comms.check_bounds "read of q
// CHECK: %[[REST:.*]] = arith.remui %k, %c128
// CHECK: comms.check_bounds "first term in its block of the left operand's scales" %[[REST]], %c0{{.*}} in %c0
// CHECK-NOT: check_bounds
// CHECK: comms.contract
comms.kernel @scales(%a: memref<32x256xf8E4M3FN>, %b: memref<256x48xf8E4M3FN>, %p: memref<32x2xf32>, %q: memref<2x1xf32>,
                     %y: memref<32x48xf32>, %i: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  comms.contract %a[%i, %k], %b[%c0, %c0] to %y[%i, %c0] tile [16, 48] depth %c128 scaled by %p, %q
    : memref<32x256xf8E4M3FN>, memref<256x48xf8E4M3FN>, memref<32x48xf32> scaled by memref<32x2xf32>, memref<2x1xf32>
  comms.return
}
