// RUN: comms-opt %s --convert-comms-to-nvvm="threads=64" -canonicalize -split-input-file | FileCheck %s --implicit-check-not=atomicrmw
// RUN: comms-opt %s --convert-comms-to-nvvm="threads=64 cluster=2" -canonicalize -split-input-file | FileCheck %s --check-prefix=CLUSTER

// A wait is the leader's, between barriers of the threads; a poll that lasts
// asks out of line whether to stop.
// CHECK-LABEL: llvm.func @wait(
// CHECK: nvvm.barrier0
// CHECK: llvm.cond_br
// CHECK: llvm.inline_asm has_side_effects "ld.acquire.sys.global.b64 $0, [$1];", "=l,l,~{memory}"
// CHECK: llvm.call @commsir_stop
// CHECK: nvvm.barrier0
// CLUSTER-LABEL: llvm.func @wait(
// CLUSTER-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CLUSTER: nvvm.cluster.arrive {aligned}
// CLUSTER: nvvm.cluster.wait {aligned}
comms.kernel @wait(%cells: !comms.signal<4>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %token = comms.wait_signal %cells[%c0] ge %one : !comms.signal<4>
  comms.return
}

// -----

// All threads read the same value of a cell: the leader's, by shared memory.
// CHECK: llvm.mlir.global internal @read_shared() {addr_space = 3 : i32, alignment = 128 : i64
// CHECK-LABEL: llvm.func @read(
// CHECK: ld.acquire.sys.global.b64
// CHECK: nvvm.barrier0
// CHECK: llvm.store %{{.*}} : i64, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: llvm.load volatile %{{.*}} : !llvm.ptr<3> -> i64
// CLUSTER-LABEL: llvm.func @read(
// CLUSTER-COUNT-2: st.shared::cluster.b64
comms.kernel @read(%cells: !comms.signal<4>, %y: memref<1xi64>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %seen = comms.read_signal %cells[%c0] : !comms.signal<4>
  memref.store %seen, %y[%c0] : memref<1xi64>
  comms.return
}

// -----

// A put goes in 16-byte accesses of all threads; then one thread signals.
// CHECK-LABEL: llvm.func @put(
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xi32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr
// CHECK: nvvm.barrier0
// CHECK: red.release.sys.global.add.u64
comms.kernel @put(%x: memref<1024xf32>, %w: !comms.window<1024xf32>, %s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant 1024 : index
  %team = comms.team world
  comms.put_signal %x[%c0] to %w[%c0] count %count at %c1 of %team then inc %s[%c0] : memref<1024xf32>, !comms.window<1024xf32>, !comms.signal<1>
  comms.return
}

// -----

// The barrier's cells are a hidden window; each thread has one member.
// CHECK-LABEL: llvm.func @meet(
// CHECK-SAME: hidden, kind = "window", name = "barrier", shape = array<i64: 5, 4>
// CHECK: nvvm.barrier0
// CHECK: st.release.sys.global.b32
// CHECK: ld.acquire.sys.global.b32
// CHECK: nvvm.barrier0
// CHECK: atom.acq_rel.gpu.global.add.u32
// CHECK: st.release.sys.global.b32
// CHECK: ld.acquire.sys.global.b32
comms.kernel @meet() attributes {ranks = 4 : i64, blocks = 3 : i64} {
  %team = comms.team world
  comms.barrier %team block
  comms.barrier %team grid
  comms.return
}

// -----

// Each team counts its own barriers, for ranks meet others more or less often; teams that cut the world alike are one.
// CHECK-LABEL: llvm.func @teams(
// CHECK-SAME: name = "barrier", shape = array<i64: 2, 5, 4>
comms.kernel @teams() attributes {ranks = 4 : i64, blocks = 3 : i64} {
  %c2 = arith.constant 2 : index
  %world = comms.team world
  %lsa = comms.team lsa
  %pair = comms.team_split %world inner 2
  %me = comms.rank %world
  %low = arith.cmpi ult, %me, %c2 : index
  scf.if %low {
    comms.barrier %pair block
  }
  comms.barrier %world block
  comms.barrier %lsa grid
  comms.return
}

// -----

// What is out of bounds leaves a record and ends the thread.
// CHECK-LABEL: llvm.func @bounds(
// CHECK: llvm.call @commsir_record
// CHECK: "exit;"
comms.kernel @bounds(%i: index) attributes {ranks = 1 : i64, blocks = 1 : i64} {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  comms.check_bounds "write of y" %i, %c1 in %c8
  comms.return
}
