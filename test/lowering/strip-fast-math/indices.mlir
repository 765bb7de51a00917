// What the bounds are proven of is what runs: index and affine arithmetic becomes that of arith, without promises.
// RUN: comms-opt %s -comms-strip-fast-math | FileCheck %s

// CHECK-LABEL: comms.kernel @index
// CHECK:         arith.divui %a, %b : index
// CHECK:         arith.ceildivsi %a, %b : index
// CHECK:         arith.shli %a, %b : index
// CHECK:         arith.cmpi ult, %a, %b : index
// CHECK-NOT:     index.
comms.kernel @index(%x: memref<4xi64>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %q = index.divu %a, %b
  %r = index.ceildivs %a, %b
  %s = index.shl %a, %b
  %c = index.cmp ult(%a, %b)
  %t = arith.select %c, %q, %r : index
  %u = index.add %t, %s
  %out1 = arith.index_cast %u : index to i64
  memref.store %out1, %x[%c0] : memref<4xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @affine
// CHECK-NOT:     affine.
// CHECK-NOT:     overflow<
// CHECK:         arith.muli %a, %{{.*}} : index
// CHECK:         arith.minsi
// CHECK:         memref.store
comms.kernel @affine(%x: memref<4xi64>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %m = affine.min affine_map<(d0)[s0] -> (d0 * 3, d0 floordiv s0)>(%a)[%b]
  %out2 = arith.index_cast %m : index to i64
  memref.store %out2, %x[%c0] : memref<4xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @promises
// CHECK:         arith.muli %a, %b : index
// CHECK:         arith.ori %{{.*}}, %b : index
// CHECK:         memref.load %x[%c0] : memref<4xi64>
// CHECK:         vector.load %y[%c0] : memref<16xf32>, vector<8xf32>
// CHECK:         vector.store %{{.*}}, %y[%c0] : memref<16xf32>, vector<8xf32>
comms.kernel @promises(%x: memref<4xi64>, %y: memref<16xf32>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %p = arith.muli %a, %b overflow<nsw, nuw> : index
  %o = arith.ori %p, %b {isDisjoint} : index
  %out3 = arith.index_cast %o : index to i64
  memref.store %out3, %x[%c0] : memref<4xi64>
  %l = memref.load %x[%c0] {alignment = 64 : i64, nontemporal = true} : memref<4xi64>
  memref.store %l, %x[%c0] : memref<4xi64>
  %v = vector.load %y[%c0] {alignment = 64 : i64} : memref<16xf32>, vector<8xf32>
  vector.store %v, %y[%c0] {alignment = 64 : i64, nontemporal = true} : memref<16xf32>, vector<8xf32>
  comms.return
}

// Folders take every loop for signed.

// CHECK-LABEL: comms.kernel @unsigned
// CHECK-DAG:     %[[HALF:.*]] = arith.constant -9223372036854775808 : index
// CHECK:         %[[FROM:.*]] = arith.addi %a, %{{.*}} : index
// CHECK:         %[[TO:.*]] = arith.addi %b, %{{.*}} : index
// CHECK:         scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step %c1 {
// CHECK:           %[[J:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK:           memref.store %{{.*}}, %x[%[[J]]]
// CHECK:         scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK-NOT:       arith.addi
// CHECK:         comms.return
comms.kernel @unsigned(%x: memref<4xi64>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for unsigned %i = %a to %b step %c1 {
    %out5 = arith.index_cast %i : index to i64
    memref.store %out5, %x[%i] : memref<4xi64>
  }
  scf.for unsigned %i = %c0 to %c4 step %c1 {
    %out6 = arith.index_cast %i : index to i64
    memref.store %out6, %x[%i] : memref<4xi64>
  }
  comms.return
}
