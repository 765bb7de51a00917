// Where MLIR takes a value for undefined, a run gives it one: no proof may leave that out.
// RUN: comms-opt %s -comms-assert-bounds | FileCheck %s

// A division by 0 gives -1, so that the offset may be 3000.

// CHECK-LABEL: comms.kernel @division
// CHECK:         comms.check_bounds "write of x"
comms.kernel @division(%x: memref<16xi64>, %a: index, %v: i64) {
  %two = arith.constant 2 : index
  %k = arith.constant 1000 : index
  %n = arith.constant 63 : index
  %b = arith.andi %a, %two : index
  %q = arith.divui %n, %b : index
  %d = arith.minsi %two, %q : index
  %three = arith.subi %two, %d : index
  %off = arith.muli %three, %k : index
  memref.store %v, %x[%off] : memref<16xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @divisor
// CHECK-NOT:     comms.check_bounds
// CHECK:         comms.return
comms.kernel @divisor(%x: memref<16xi64>, %a: index, %v: i64) {
  %one = arith.constant 1 : index
  %n = arith.constant 15 : index
  %b = arith.maxui %a, %one : index
  %q = arith.divui %n, %b : index
  memref.store %v, %x[%q] : memref<16xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @flags
// CHECK:         comms.check_bounds "write of x"
comms.kernel @flags(%x: memref<16xi64>, %a: index, %v: i64) {
  %one = arith.constant 1 : index
  %m16 = arith.constant -16 : index
  %c = arith.cmpi ult, %m16, %a : index
  %s = arith.select %c, %one, %m16 : index
  %i = arith.muli %s, %s overflow<nuw> : index
  memref.store %v, %x[%i] : memref<16xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @shift
// CHECK:         comms.check_bounds "write of x"
comms.kernel @shift(%x: memref<16xi64>, %a: index, %v: i64) {
  %m1 = arith.constant -1 : index
  %i = arith.shrui %m1, %a : index
  %c15 = arith.constant 15 : index
  %j = arith.subi %c15, %i : index
  memref.store %v, %x[%j] : memref<16xi64>
  comms.return
}

// A step that is 0, goes back or wraps around ends the run before the loop.

// CHECK-LABEL: comms.kernel @step
// CHECK:         %[[OFF:.*]] = arith.subi %step, %{{.*}} : index
// CHECK:         comms.check_bounds "step of a loop, counted from 1," %[[OFF]],
// CHECK-NEXT:    scf.for
// CHECK-NOT:     comms.check_bounds
// CHECK:         comms.return
comms.kernel @step(%x: memref<16xi64>, %a: index, %step: index, %v: i64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %from = arith.maxsi %a, %c0 : index
  scf.for %i = %from to %c16 step %step {
    memref.store %v, %x[%i] : memref<16xi64>
  }
  comms.return
}

// CHECK-LABEL: comms.kernel @blocks
// CHECK-NOT:     comms.check_bounds
// CHECK:         comms.return
comms.kernel @blocks(%x: memref<16xi64>, %v: i64) {
  %c16 = arith.constant 16 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %i = %block to %c16 step %blocks {
    memref.store %v, %x[%i] : memref<16xi64>
  }
  comms.return
}

// A copy is as long as its source, and a view as long as it says, whatever the memory has.

// CHECK-LABEL: comms.kernel @copy
// CHECK:         comms.check_bounds "copy of a to x, dimension 0"
// CHECK:         comms.check_bounds "copy of a to x, dimension 0"
// CHECK-NEXT:    memref.copy
comms.kernel @copy(%x: memref<16xi64>, %a: memref<32xi64>) {
  %d = memref.cast %x : memref<16xi64> to memref<?xi64>
  %e = memref.cast %a : memref<32xi64> to memref<?xi64>
  memref.copy %e, %d : memref<?xi64> to memref<?xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @view
// CHECK:         %[[SIZE:.*]] = memref.dim
// CHECK:         comms.check_bounds "view of x, dimension 0" %c16{{.*}}, %c512{{.*}} in %[[SIZE]]
// CHECK-NEXT:    memref.subview
comms.kernel @view(%x: memref<16xi64>, %v: i64) {
  %c3 = arith.constant 3 : index
  %d = memref.cast %x : memref<16xi64> to memref<?xi64>
  %s = memref.subview %d[16][512][1] : memref<?xi64> to memref<512xi64, strided<[1], offset: 16>>
  memref.store %v, %s[%c3] : memref<512xi64, strided<[1], offset: 16>>
  comms.return
}

// The least integer, divided with rounding up: -4. MLIR 22 takes it for 4.

// CHECK-LABEL: comms.kernel @least
// CHECK:         comms.check_bounds "write of x"
comms.kernel @least(%x: memref<16xi64>, %v: i64) {
  %least = arith.constant -9223372036854775808 : index
  %b = arith.constant 2305843009213693952 : index
  %q = arith.ceildivsi %least, %b : index
  memref.store %v, %x[%q] : memref<16xi64>
  comms.return
}
