// RUN: comms-opt %s -comms-assert-bounds | FileCheck %s

// CHECK-LABEL: @argument
comms.kernel @argument(%x: memref<100xf32>, %off: index) {
  // CHECK-DAG: %[[COUNT:.*]] = arith.constant 10 : index
  // CHECK-DAG: %[[LIMIT:.*]] = arith.constant 100 : index
  // CHECK:     comms.check_bounds "read of x" %off, %[[COUNT]] in %[[LIMIT]]
  // CHECK-NEXT: comms.tile_load
  %a = comms.tile_load %x[%off] : memref<100xf32> -> tensor<10xf32>
  // CHECK:     comms.check_bounds "write of x" %off
  // CHECK-NEXT: comms.tile_store
  comms.tile_store %a, %x[%off] : tensor<10xf32>, memref<100xf32>
  comms.return
}

// An extent that could be more than the tile; a whole tile would fit.
// CHECK-LABEL: @extent
comms.kernel @extent(%x: memref<100xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  // CHECK: comms.check_bounds "`valid` of a tile" %{{.*}}, %n in %c10
  // CHECK-NEXT: comms.tile_load
  %a = comms.tile_load %x[%c0] valid %n : memref<100xf32> -> tensor<10xf32>
  comms.tile_store %a, %x[%c0] : tensor<10xf32>, memref<100xf32>
  comms.return
}

// One element too far at the last step.
// CHECK-LABEL: @off_by_one
comms.kernel @off_by_one(%x: memref<999xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %off = arith.muli %t, %c256 : index
    %left = arith.subi %c1000, %off : index
    %valid = arith.minsi %left, %c256 : index
    // CHECK: comms.check_bounds "read of x"
    %a = comms.tile_load %x[%off] valid %valid : memref<999xf32> -> tensor<256xf32>
    // CHECK: comms.check_bounds "write of x"
    comms.tile_store %a, %x[%off] valid %valid : tensor<256xf32>, memref<999xf32>
  }
  comms.return
}

// An unsigned comparison says nothing of a number that may be negative when
// read as signed, and one on the other branch nothing at all.
// CHECK-LABEL: @no_guard
comms.kernel @no_guard(%x: memref<100xf32>, %i: index, %j: index) {
  %c0 = arith.constant 0 : index
  %c50 = arith.constant 50 : index
  %below = arith.cmpi ult, %i, %j : index
  %less = arith.cmpi slt, %j, %c50 : index
  scf.if %less {
    scf.if %below {
      // CHECK: comms.check_bounds
      %a = comms.tile_load %x[%i] : memref<100xf32> -> tensor<1xf32>
      // CHECK: comms.check_bounds
      comms.tile_store %a, %x[%i] : tensor<1xf32>, memref<100xf32>
    }
  } else {
    // CHECK: comms.check_bounds
    %a = comms.tile_load %x[%j] : memref<100xf32> -> tensor<1xf32>
    comms.tile_store %a, %x[%c0] : tensor<1xf32>, memref<100xf32>
  }
  comms.return
}

// A product that leaves 64 bits proves nothing.
// CHECK-LABEL: @overflow
comms.kernel @overflow(%x: memref<100xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c100 = arith.constant 100 : index
  %big = arith.constant 4611686018427387904 : index
  %product = arith.muli %i, %big : index
  %low = arith.cmpi sge, %product, %c0 : index
  %high = arith.cmpi slt, %product, %c100 : index
  scf.if %low {
    scf.if %high {
      // CHECK: comms.check_bounds
      // CHECK: comms.tile_load
      %a = comms.tile_load %x[%i] : memref<100xf32> -> tensor<1xf32>
      comms.tile_store %a, %x[%c0] : tensor<1xf32>, memref<100xf32>
    }
  }
  comms.return
}

// Packets, poison, one-sided operations and cells.
// CHECK-LABEL: @others
comms.kernel @others(%w: !comms.window<8xi64>, %p: !comms.window<8xf32>, %x: memref<8xf32>, %s: !comms.signal<4>, %off: index, %n: index, %f: i32) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %m = comms.local %w : !comms.window<8xi64> -> memref<8xi64>
  // CHECK: %[[PACKETS:.*]] = arith.constant 2 : index
  // CHECK: comms.check_bounds "read of w" %off, %[[PACKETS]] in %c8
  %a = comms.packet_load %m[%off] flag %f : memref<8xi64> -> tensor<4xbf16>
  // CHECK: comms.check_bounds "write of w" %off
  comms.packet_store %a, %m[%off] flag %f : tensor<4xbf16>, memref<8xi64>
  %q = comms.peer %p at %c0 of %team : !comms.window<8xf32> -> memref<8xf32>
  // CHECK: comms.check_bounds "read of p" %off
  %b = comms.poison_load %q[%off] : memref<8xf32> -> tensor<4xf32>
  // CHECK: comms.check_bounds "write of p" %off
  comms.poison_store %b, %q[%off] : tensor<4xf32>, memref<8xf32>
  // CHECK: comms.check_bounds "write of p" %off, %n
  comms.poison_fill %q[%off] count %n : memref<8xf32>
  // CHECK: comms.check_bounds "read of x" %off, %n
  // CHECK: comms.check_bounds "write of p" %c0{{.*}}, %n
  comms.put %x[%off] to %p[%c0] count %n at %c0 of %team : memref<8xf32>, !comms.window<8xf32>
  // CHECK: comms.check_bounds "cell of s" %off, %{{.*}} in %c4
  comms.signal inc %s[%off] at %c0 of %team : !comms.signal<4>
  comms.return
}

// What the race detector is told is checked before it is told, once.
// RUN: comms-opt %s -comms-instrument -comms-assert-bounds -canonicalize -cse | FileCheck %s --check-prefix=RECORD
// RECORD-LABEL: @recorded
// RECORD:      comms.check_bounds "read of w" %off
// RECORD-NEXT: comms.record_access read
// RECORD-NEXT: comms.tile_load
// RECORD-NEXT: comms.tile_store
comms.kernel @recorded(%w: !comms.window<8xf32>, %x: memref<4xf32>, %off: index) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %m = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
  %a = comms.tile_load %m[%off] : memref<8xf32> -> tensor<4xf32>
  comms.tile_store %a, %x[%c0] : tensor<4xf32>, memref<4xf32>
  comms.return
}

// A counter that begins at a product is a multiple of three only where the
// product stays within 64 bits.
// CHECK-LABEL: @wrapping
comms.kernel @wrapping(%x: memref<28xf32>, %n: index, %m: memref<28xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c30 = arith.constant 30 : index
  %first = arith.muli %n, %c3 : index
  // CHECK: comms.check_bounds "read of x"
  scf.for %i = %first to %c30 step %c3 {
    %positive = arith.cmpi sge, %i, %c0 : index
    scf.if %positive {
      %a = comms.tile_load %x[%i] : memref<28xf32> -> tensor<1xf32>
      comms.tile_store %a, %m[%c0] : tensor<1xf32>, memref<28xf32>
    }
  }
  // One whose first value is small is.
  %few = arith.remui %n, %c3 : index
  %small = arith.muli %few, %c3 : index
  // CHECK-NOT: comms.check_bounds
  // CHECK: comms.return
  scf.for %i = %small to %c30 step %c3 {
    %a = comms.tile_load %x[%i] : memref<28xf32> -> tensor<1xf32>
    comms.tile_store %a, %m[%c0] : tensor<1xf32>, memref<28xf32>
  }
  comms.return
}

// Grows from turn to turn by way of the loop inside, which may have no turn: the analysis ends.
// CHECK-LABEL: @grows
comms.kernel @grows(%x: memref<100xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %p = scf.for %i = %c0 to %c8 step %c1 iter_args(%p0 = %c0) -> (index) {
    %p1 = arith.addi %p0, %c1 : index
    %p2 = scf.for %j = %c0 to %c3 step %c1 iter_args(%q = %p1) -> (index) {
      scf.yield %j : index
    }
    scf.yield %p2 : index
  }
  // CHECK: comms.check_bounds "read of x"
  %a = comms.tile_load %x[%p] : memref<100xf32> -> tensor<10xf32>
  comms.tile_store %a, %x[%c0] : tensor<10xf32>, memref<100xf32>
  comms.return
}

// Of memory of two dimensions each has its own bound; what a constant is proven to keep is not checked.
// CHECK-LABEL: @elements
comms.kernel @elements(%x: memref<3x4xf32>, %y: memref<1xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[C3:.*]] = arith.constant 3 : index
  // CHECK: comms.check_bounds "read of x, dimension 0" %{{.*}}, %{{.*}} in %[[C3]]
  // CHECK-NOT: comms.check_bounds
  // CHECK: memref.load
  %a = memref.load %x[%i, %c1] : memref<3x4xf32>
  // CHECK: comms.check_bounds "write of x, dimension 1"
  // CHECK: memref.store
  memref.store %a, %x[%c0, %i] : memref<3x4xf32>
  memref.store %a, %y[%c0] : memref<1xf32>
  comms.return
}
