// Every operation that NCCL does is a call of its device library, before that
// is linked: the table of the Spec.
// RUN: comms-opt %s --comms-call-nccl | FileCheck %s
// RUN: comms-opt %s --comms-call-nccl=only-gin | FileCheck %s --check-prefix=GIN
// RUN: comms-translate %s --comms-to-nvptx --gpu="impl=nccl check=false" | FileCheck %s --check-prefix=LLVM
// RUN: comms-translate %s --comms-to-ptx --gpu="impl=nccl check=false" --device-library=%commsir_build/lowering/nvvm/device/NcclDevice.bc -o %t.ptx
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: %ptxas -arch=sm_90 %t.ptx -o %t.cubin
// RUN: not comms-translate %s --comms-to-ptx --gpu="impl=nccl check=false" 2>&1 | FileCheck %s --check-prefix=MISSING
// REQUIRES: ptxas

// MISSING: of NCCL's device library, which was not given: it is built for one release of NCCL

// Linked and inlined: no call is left.
// PTX-NOT: call{{.*}}commsir_nccl
// PTX-NOT: .extern .func{{.*}}commsir_nccl

// GIN-LABEL: comms.kernel @windows
// GIN-NOT: llvm.call
// GIN-LABEL: comms.kernel @signals
// GIN: llvm.call @commsir_nccl_gin_signal_inc

// LLVM-LABEL: define {{.*}} @windows
// LLVM: call ptr @commsir_nccl_peer_pointer
// LLVM-LABEL: define {{.*}} @signals
// LLVM: call void @commsir_nccl_gin_signal_inc

// CHECK-LABEL: comms.kernel @windows
// CHECK-SAME: %nccl.window.w: i64
comms.kernel @windows(%w: !comms.window<256xf32>, %out: memref<256xf32>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: llvm.call @commsir_nccl_lsa_barrier(
  comms.barrier %team block
  // CHECK: llvm.call @commsir_nccl_local_pointer(
  %mine = comms.local %w : !comms.window<256xf32> -> memref<256xf32>
  // CHECK: llvm.call @commsir_nccl_peer_pointer(
  %theirs = comms.peer %w at %c1 of %team : !comms.window<256xf32> -> memref<256xf32>
  %x = comms.tile_load %theirs[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %x, %mine[%c0] : tensor<256xf32>, memref<256xf32>
  // CHECK: llvm.call @commsir_nccl_lsa_barrier_arrive(
  %arrived = comms.barrier_arrive %team block
  // CHECK: llvm.call @commsir_nccl_lsa_barrier_wait(
  %all = comms.barrier_wait %arrived
  comms.return
}

// CHECK-LABEL: comms.kernel @wide
comms.kernel @wide() attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %lsa = comms.team lsa
  %rail = comms.team rail
  // CHECK: llvm.call @commsir_nccl_world_barrier(
  comms.barrier %world block
  // CHECK: llvm.call @commsir_nccl_lsa_barrier(
  comms.barrier %lsa block
  // CHECK: %[[NO:.*]] = arith.constant false
  // CHECK: llvm.call @commsir_nccl_rail_barrier({{.*}}, {{.*}}, %[[NO]])
  comms.barrier %rail block order relaxed
  comms.return
}

// CHECK-LABEL: comms.kernel @signals
// CHECK-SAME: %nccl.first.s: i64
comms.kernel @signals(%s: !comms.signal<4>, %n: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %five = arith.constant 5 : i64
  // The adapter's work is one thread's, after what all have written.
  // CHECK: comms.fence acq_rel sys
  // CHECK: scf.if
  // CHECK: llvm.call @commsir_nccl_gin_signal_inc(
  comms.signal inc %s[%c0] at %c2 of %team gin <context_id = 1> : !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_signal_add(
  comms.signal add %s[%c2] value %five at %c2 of %team gin <> : !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_wait_signal(
  %a = comms.wait_signal %s[%c0] ge %five : !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_wait_signal(
  %b = comms.wait_signal_from %s[%c2] ge %five from %c2 of %team : !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_read_signal(
  %v = comms.read_signal %s[%c0] : !comms.signal<4>
  %x = comms.splat %v : i64 -> tensor<1xi64>
  comms.tile_store %x, %n[%c0] : tensor<1xi64>, memref<1xi64>
  // CHECK: llvm.call @commsir_nccl_gin_reset_signal(
  comms.reset_signal %s[%c0] : !comms.signal<4>
  comms.return
}

// CHECK-LABEL: comms.kernel @puts
comms.kernel @puts(%from: !comms.window<64xf32>, %to: !comms.window<64xf32>, %s: !comms.signal<4>, %c: !comms.counter<2>, %n: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %five = arith.constant 5 : i64
  %mine = comms.local %from : !comms.window<64xf32> -> memref<64xf32>
  // CHECK: llvm.call @commsir_nccl_gin_put(
  comms.put %mine[%c0] to %to[%c16] count %c16 at %c1 of %team gin <> : memref<64xf32>, !comms.window<64xf32>
  // CHECK: llvm.call @commsir_nccl_gin_put_counted(
  comms.put %mine[%c0] to %to[%c16] count %c16 at %c1 of %team counted %c[%c1] : !comms.counter<2> gin <> : memref<64xf32>, !comms.window<64xf32>
  // CHECK: llvm.call @commsir_nccl_gin_put_inc(
  comms.put_signal %mine[%c0] to %to[%c16] count %c16 at %c1 of %team then inc %s[%c0] gin <> : memref<64xf32>, !comms.window<64xf32>, !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_put_add(
  comms.put_signal %mine[%c0] to %to[%c16] count %c16 at %c1 of %team then add %s[%c0] value %five gin <> : memref<64xf32>, !comms.window<64xf32>, !comms.signal<4>
  // CHECK: llvm.call @commsir_nccl_gin_flush(
  comms.flush %team gin <>
  // CHECK: llvm.call @commsir_nccl_gin_wait_counter(
  %t = comms.wait_counter %c[%c1] ge %five : !comms.counter<2>
  // CHECK: llvm.call @commsir_nccl_gin_read_counter(
  %v = comms.read_counter %c[%c1] : !comms.counter<2>
  %x = comms.splat %v : i64 -> tensor<1xi64>
  comms.tile_store %x, %n[%c0] : tensor<1xi64>, memref<1xi64>
  // CHECK: llvm.call @commsir_nccl_gin_reset_counter(
  comms.reset_counter %c[%c1] : !comms.counter<2>
  comms.return
}
