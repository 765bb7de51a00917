// RUN: comms-opt %s --verify-roundtrip | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK: comms.kernel @empty() {
comms.kernel @empty() {
  comms.return
}

// CHECK: comms.kernel private @args(
// CHECK-SAME: %x: !comms.window<8x?x64xbf16>, %m: memref<?x4xf8E4M3FN>, %s: !comms.signal<16>, %c: !comms.counter<2>,
// CHECK-SAME: %i: index, %j: i32, %f: f64, %first_value: f32 {comms.name = "first value"},
// CHECK-SAME: %h: !comms.window<4xf32> {comms.hidden, comms.init = "poison"})
// CHECK-SAME: attributes {blocks = 4 : i64, lsa_size = 4 : i64, ranks = 8 : i64, test.note = "kept"} {
comms.kernel private @args(
    %x: !comms.window<8x?x64xbf16>, %m: memref<?x4xf8E4M3FN>, %s: !comms.signal<16>, %c: !comms.counter<2>,
    %i: index, %j: i32, %f: f64, %other: f32 {comms.name = "first value"},
    %h: !comms.window<4xf32> {comms.hidden, comms.init = "poison"})
    attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 4 : i64, test.note = "kept"} {
  comms.return
}

// A name that is no SSA name is kept as an attribute.
// CHECK: comms.kernel @numbered(%_0: i32 {comms.name = "0"}, %a_b: i32 {comms.name = "a b"}) {
comms.kernel @numbered(%0: i32, %1: i32 {comms.name = "a b"}) {
  comms.return
}

// CHECK: comms.kernel @bodies
comms.kernel @bodies() {
  // CHECK: %[[T:.*]] = comms.team world
  %t = comms.team world
  // CHECK: comms.role "send" blocks 0 to 2 {
  // CHECK-NEXT: }
  comms.role "send" blocks 0 to 2 {
  }
  // CHECK: comms.role "receive" blocks 2 to 4 {
  // CHECK-NEXT: comms.epoch
  // CHECK-NEXT: } {test.note}
  comms.role "receive" blocks 2 to 4 {
    %e = comms.epoch
  } {test.note}
  // CHECK: comms.for_peers %[[T]] as %[[P:.*]] {
  // CHECK-NEXT: comms.translate_rank %[[P]] from %[[T]] to %[[T]]
  // CHECK-NEXT: }
  comms.for_peers %t as %p {
    %q = comms.translate_rank %p from %t to %t
  }
  // CHECK: comms.for_peers %[[T]] reversed as %{{.*}} {
  // CHECK-NEXT: comms.yield {test.note}
  // CHECK-NEXT: } {test.other}
  comms.for_peers %t reversed as %p {
    comms.yield {test.note}
  } {test.other}
  comms.return
}
