// Loops, roles, teams and scratch memory.
// RUN: comms-opt %s -split-input-file --convert-comms-to-cpu --canonicalize --cse | FileCheck %s

// A loop over the peers knows that each is a member: no check of the rank.
// CHECK-LABEL: llvm.func @peers
// CHECK-NOT:   commsir_cpu_out_of_bounds
// CHECK:       llvm.call @commsir_cpu_signal
comms.kernel @peers(%s: !comms.signal<1>) attributes {ranks = 8 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  comms.for_peers %team as %peer {
    comms.signal inc %s[%c0] at %peer of %team : !comms.signal<1>
  }
  comms.return
}

// -----

// Any other loop asks in each turn whether to stop.
// CHECK-LABEL: llvm.func @long
// CHECK:       llvm.load volatile %{{.*}} : !llvm.ptr -> i32
// CHECK:       llvm.call @commsir_cpu_interrupt
comms.kernel @long(%n: index, %y: memref<1xf32>, %x: f32) attributes {ranks = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %y[%c0] : memref<1xf32>
  }
  comms.return
}

// -----

// A loop over the elements of a tile is short: it does not ask.
// CHECK-LABEL: llvm.func @tile
// CHECK-NOT:   commsir_cpu_interrupt
comms.kernel @tile(%y: memref<64xf32>) attributes {ranks = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : vector<16xf32>
  scf.for %i = %c0 to %c64 step %c16 {
    vector.store %one, %y[%i] : memref<64xf32>, vector<16xf32>
  } {comms.tile}
  comms.return
}

// -----

// A rank of which nothing is known is checked.
// CHECK-LABEL: llvm.func @unknown
// CHECK:       llvm.icmp "uge"
// CHECK:       llvm.call @commsir_cpu_out_of_bounds
// CHECK:       llvm.call @commsir_cpu_signal
comms.kernel @unknown(%s: !comms.signal<1>, %peer: index) attributes {ranks = 8 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  comms.signal inc %s[%c0] at %peer of %team : !comms.signal<1>
  comms.return
}

// -----

// Ranks 0 to 3 and 4 to 7 are lsa teams; the second half of each: (rank / 4) *
// 4 + ((rank mod 4) / 2) * 2.
// CHECK-LABEL: llvm.func @split
// CHECK-SAME:  comms.lsa_size = 4
// CHECK-DAG:   %[[FOUR:.*]] = llvm.mlir.constant(4 : index) : i64
// CHECK-DAG:   %[[TWO:.*]] = llvm.mlir.constant(2 : index) : i64
// CHECK:       %[[RANK:.*]] = llvm.load %arg0
// CHECK:       %[[NODE:.*]] = llvm.udiv %[[RANK]], %[[FOUR]]
// CHECK:       %[[FIRST:.*]] = llvm.mul %[[NODE]], %[[FOUR]]
// CHECK:       %[[WITHIN:.*]] = llvm.sub %[[RANK]], %[[FIRST]]
// CHECK:       llvm.udiv %[[WITHIN]], %[[TWO]]
// CHECK:       llvm.call @commsir_cpu_arrive(%arg0
comms.kernel @split() attributes {ranks = 8 : i64, lsa_size = 4 : i64} {
  %lsa = comms.team lsa
  %pair = comms.team_split %lsa inner 2
  comms.barrier %pair block
  comms.return
}

// -----

// Two pieces of scratch memory, each 64-byte aligned.
// CHECK-LABEL: llvm.func @scratch
// CHECK-SAME:  comms.arena_bytes = 192
// CHECK:       %[[ARENA_AT:.*]] = llvm.getelementptr %arg0[56]
// CHECK:       %[[ARENA:.*]] = llvm.load %[[ARENA_AT]] : !llvm.ptr -> !llvm.ptr
// CHECK:       llvm.getelementptr %[[ARENA]][128]
comms.kernel @scratch() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %a = comms.scratch : memref<20xf32, #comms.space<scratch>>
  %b = comms.scratch : memref<3xf32, #comms.space<scratch>>
  %x = memref.load %a[%c0] : memref<20xf32, #comms.space<scratch>>
  memref.store %x, %b[%c0] : memref<3xf32, #comms.space<scratch>>
  comms.return
}

// -----

// The arrival's number is the token.
// CHECK-LABEL: llvm.func @halves
// CHECK:       %[[HANDLE:.*]] = llvm.call @commsir_cpu_arrive
// CHECK:       llvm.call @commsir_cpu_barrier_wait(%arg0, %{{.*}}, %[[HANDLE]])
comms.kernel @halves() attributes {ranks = 2 : i64} {
  %team = comms.team world
  %token = comms.barrier_arrive %team grid
  %done = comms.barrier_wait %token
  comms.return
}
