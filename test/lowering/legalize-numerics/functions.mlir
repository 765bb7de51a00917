// RUN: comms-opt %s -comms-legalize-numerics | FileCheck %s
// RUN: comms-opt %s -comms-legalize-numerics -canonicalize -cse -mlir-print-op-generic | FileCheck %s --check-prefix=EXACT

// Nothing of math is left but what has one right result, and no flag that permits fusion.
// EXACT-NOT:   "math.{{(exp|log|tanh|sin|cos|erf|pow|rsqrt|tan|cbrt)}}
// EXACT-NOT:   fastmath<{{fast|contract|reassoc}}
// EXACT:       "comms.return"

// CHECK-LABEL: comms.kernel @functions
// CHECK-NOT:   math.exp
// CHECK:       comms.return
comms.kernel @functions(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %b = math.exp %a : vector<16xf32>
  %c = math.log %b fastmath<fast> : vector<16xf32>
  %d = math.tanh %c : vector<16xf32>
  %e = math.sin %d : vector<16xf32>
  %f = math.cos %e : vector<16xf32>
  %g = math.erf %f : vector<16xf32>
  %h = math.powf %g, %a : vector<16xf32>
  %i = math.rsqrt %h : vector<16xf32>
  %j = math.exp2 %i : vector<16xf32>
  %k = math.log2 %j : vector<16xf32>
  %l = math.cbrt %k : vector<16xf32>
  %m = math.tan %l : vector<16xf32>
  %n = arith.mulf %m, %a fastmath<contract> : vector<16xf32>
  %o = arith.addf %n, %a fastmath<contract,reassoc> : vector<16xf32>
  %p = math.log1p %o : vector<16xf32>
  %q = math.expm1 %p : vector<16xf32>
  vector.store %q, %x[%c0] : memref<16xf32>, vector<16xf32>
  %s = memref.load %x[%c0] : memref<16xf32>
  %t = math.exp %s : f32
  memref.store %t, %x[%c0] : memref<16xf32>
  comms.return
}

// A fused multiply-add is one when the kernel says so.
// CHECK-LABEL: comms.kernel @fused
// CHECK:       math.fma %{{.*}} : f32
comms.kernel @fused(%x: memref<16xf32>, %a: f32, %b: f32, %c: f32) {
  %c0 = arith.constant 0 : index
  %d = math.fma %a, %b, %c : f32
  memref.store %d, %x[%c0] : memref<16xf32>
  comms.return
}

// CHECK-LABEL: comms.kernel @narrow
// CHECK:       %[[A:.*]] = arith.extf %a : f16 to f32
// CHECK:       %[[B:.*]] = arith.extf %b : f16 to f32
// CHECK:       %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK:       arith.truncf %[[S]] : f32 to f16
comms.kernel @narrow(%x: memref<16xf16>, %a: f16, %b: f16) {
  %c0 = arith.constant 0 : index
  %d = arith.addf %a, %b : f16
  memref.store %d, %x[%c0] : memref<16xf16>
  comms.return
}

// Wrapping stays; promises that it does not happen go, of addresses too.
// CHECK-LABEL: comms.kernel @integers
// CHECK:       arith.addi %a, %b : i32
// CHECK:       arith.addi %i, %i : index
// CHECK:       %[[ZERO:.*]] = arith.cmpi eq, %b
// CHECK:       %[[SAFE:.*]] = arith.select
// CHECK:       arith.divsi %{{.*}}, %[[SAFE]] : i32
// CHECK:       arith.minui %b
// CHECK:       arith.shli
comms.kernel @integers(%x: memref<16xi32>, %a: i32, %b: i32, %i: index) {
  %s = arith.addi %a, %b overflow<nsw> : i32
  %j = arith.addi %i, %i overflow<nsw> : index
  %q = arith.divsi %s, %b : i32
  %t = arith.shli %q, %b : i32
  memref.store %t, %x[%j] : memref<16xi32>
  comms.return
}

// A divisor that is a safe constant needs no guard.
// CHECK-LABEL: comms.kernel @safe
// CHECK-NOT:   arith.select
// CHECK:       comms.return
comms.kernel @safe(%x: memref<16xi32>, %a: i32, %i: index) {
  %seven = arith.constant 7 : i32
  %q = arith.divsi %a, %seven : i32
  memref.store %q, %x[%i] : memref<16xi32>
  comms.return
}

// The bits of a computed NaN are canonical where they show; moved data keeps its.
// CHECK-LABEL: comms.kernel @seen
// CHECK:       %[[S:.*]] = arith.addf %a, %a : f32
// CHECK:       %[[N:.*]] = arith.cmpf uno, %[[S]], %[[S]] : f32
// CHECK:       %[[C:.*]] = arith.select %[[N]], %{{.*}}, %[[S]] : f32
// CHECK:       arith.bitcast %[[C]] : f32 to i32
// CHECK:       %[[L:.*]] = memref.load %y
// CHECK:       memref.store %[[L]], %z
comms.kernel @seen(%x: memref<16xi32>, %y: memref<4xf32>, %z: memref<4xf32>, %a: f32, %i: index) {
  %s = arith.addf %a, %a : f32
  %b = arith.bitcast %s : f32 to i32
  memref.store %b, %x[%i] : memref<16xi32>
  %l = memref.load %y[%i] : memref<4xf32>
  memref.store %l, %z[%i] : memref<4xf32>
  comms.return
}

// What is made canonical already is left alone, and nothing compares bf16.
// CHECK-LABEL: comms.kernel @seen_once
// CHECK:       arith.cmpf uno, %{{.*}} : f32
// CHECK-NOT:   arith.cmpf
// CHECK:       memref.store
// CHECK-LABEL: comms.kernel @seen_narrow
// CHECK-NOT:   arith.cmpf uno, %{{.*}} : bf16
// CHECK:       memref.store
comms.kernel @seen_once(%z: memref<4xbf16>, %a: bf16, %i: index) {
  %nan = arith.constant 0x7FC0 : bf16
  %n = arith.cmpf uno, %a, %a : bf16
  %c = arith.select %n, %nan, %a : bf16
  memref.store %c, %z[%i] : memref<4xbf16>
  comms.return
}
comms.kernel @seen_narrow(%z: memref<4xbf16>, %a: bf16, %i: index) {
  %s = arith.addf %a, %a : bf16
  memref.store %s, %z[%i] : memref<4xbf16>
  comms.return
}

// Huge angles, which are rare, are reduced behind one branch for the whole vector; exp has none.
// CHECK-LABEL: comms.kernel @angles
// CHECK:       %[[HUGE:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK:       %[[ANY:.*]] = vector.reduction <or>, %[[HUGE]] : vector<16xi1> into i1
// CHECK:       %[[R:.*]]:2 = scf.if %[[ANY]] -> (vector<16xf32>, vector<16xi32>) {
// CHECK:         arith.muli %{{.*}} : vector<16xi64>
// CHECK:       } else {
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  }
// CHECK:       comms.return
// CHECK-LABEL: comms.kernel @powers
// CHECK-NOT:   scf.if
// CHECK:       comms.return
comms.kernel @angles(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %b = math.sin %a : vector<16xf32>
  vector.store %b, %x[%c0] : memref<16xf32>, vector<16xf32>
  comms.return
}
comms.kernel @powers(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %b = math.exp %a : vector<16xf32>
  vector.store %b, %x[%c0] : memref<16xf32>, vector<16xf32>
  comms.return
}
