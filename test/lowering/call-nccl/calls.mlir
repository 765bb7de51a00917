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
// CHECK-SAME: %nccl.comm: i64 {comms.nccl}, %nccl.window.w: i64 {comms.nccl}, %nccl.offset.w: i64 {comms.nccl}
// CHECK-SAME: comms.nccl = {contexts = 0 : i64, counters = 0 : i64, lsa_barriers = 1 : i64, rail_barriers = 0 : i64, signals = 0 : i64}
comms.kernel @windows(%w: !comms.window<256xf32>, %out: memref<256xf32>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: llvm.call @commsir_nccl_lsa_barrier(
  comms.barrier %team block
  // CHECK: llvm.call @commsir_nccl_local_pointer(%{{.*}}, %nccl.offset.w)
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
// CHECK-SAME: lsa_barriers = 2 : i64, rail_barriers = 2 : i64, reach = 4 : i64, signals = 0 : i64
comms.kernel @wide(%n: memref<1xi64>) attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 2 : i64} {
  %world = comms.team world
  %lsa = comms.team lsa
  %rail = comms.team rail
  // CHECK: llvm.call @commsir_nccl_world_barrier(
  comms.barrier %world block
  // CHECK: llvm.call @commsir_nccl_lsa_barrier(
  comms.barrier %lsa block
  // CHECK: %[[NO:.*]] = arith.constant 0 : i32
  // CHECK: llvm.call @commsir_nccl_rail_barrier({{.*}}, {{.*}}, %[[NO]])
  comms.barrier %rail block order relaxed
  // CHECK: llvm.call @commsir_nccl_world_rank(
  %a = comms.rank %world
  // CHECK: llvm.call @commsir_nccl_lsa_rank(
  %b = comms.rank %lsa
  // CHECK: llvm.call @commsir_nccl_rail_rank(
  %c = comms.rank %rail
  // CHECK: llvm.call @commsir_nccl_world_size(
  %d = comms.size %world
  // CHECK: llvm.call @commsir_nccl_lsa_size(
  %e = comms.size %lsa
  // CHECK: llvm.call @commsir_nccl_rail_size(
  %f = comms.size %rail
  %ab = arith.addi %a, %b : index
  %abc = arith.addi %ab, %c : index
  %abcd = arith.addi %abc, %d : index
  %abcde = arith.addi %abcd, %e : index
  %abcdef = arith.addi %abcde, %f : index
  %all = arith.index_cast %abcdef : index to i64
  %tile = comms.splat %all : i64 -> tensor<1xi64>
  %c0 = arith.constant 0 : index
  comms.tile_store %tile, %n[%c0] : tensor<1xi64>, memref<1xi64>
  comms.return
}

// CHECK-LABEL: comms.kernel @signals
// CHECK-SAME: %nccl.first.s: i64
// CHECK-SAME: comms.nccl = {contexts = 2 : i64, counters = 0 : i64, lsa_barriers = 0 : i64, rail_barriers = 0 : i64, signals = 4 : i64}
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
  comms.signal add %s[%c2] value %five at %c2 of %team gin <context_id = 1> : !comms.signal<4>
  // The cells are those of the context that changes them.
  // CHECK: %[[CONTEXT:.*]] = arith.constant 1 : i32
  // CHECK: llvm.call @commsir_nccl_gin_wait_signal(%{{.*}}, %[[CONTEXT]], %{{.*}}, %{{.*}})
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
// CHECK-SAME: counters = 2 : i64{{.*}}signals = 4 : i64
comms.kernel @puts(%from: !comms.window<64xf32>, %to: !comms.window<64xf32>, %s: !comms.signal<4>, %c: !comms.counter<2>, %n: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %five = arith.constant 5 : i64
  %mine = comms.local %from : !comms.window<64xf32> -> memref<64xf32>
  // Offsets count from the start of NCCL's window, not of the argument.
  // CHECK: arith.addi %nccl.offset.to, %{{.*}} : i64
  // CHECK: arith.addi %nccl.offset.from, %{{.*}} : i64
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

// The one address of all parts; what uses it stays until tiles are lowered.
// CHECK-LABEL: comms.kernel @all
// CHECK-SAME: %nccl.window.w: i64 {comms.nccl}
// CHECK-SAME: multimem
comms.kernel @all(%w: !comms.window<64xbf16>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  // CHECK: %[[ADDRESS:.*]] = llvm.call @commsir_nccl_multimem_pointer(%{{.*}}, %nccl.offset.w, %{{.*}}) : (!llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
  // CHECK: %[[WORD:.*]] = llvm.ptrtoint %[[ADDRESS]]
  // CHECK: %[[ALL:.*]] = builtin.unrealized_conversion_cast %[[WORD]] : i64 to memref<64xbf16, #comms.space<multimem>>
  // CHECK: comms.multimem_load_reduce sum %[[ALL]]
  // GIN-LABEL: comms.kernel @all
  // GIN: comms.multimem %w of
  // LLVM-LABEL: define {{.*}} @all
  // LLVM: call ptr @commsir_nccl_multimem_pointer
  // LLVM: multimem.ld_reduce
  // PTX-LABEL: .entry all(
  // PTX: multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2
  // PTX: multimem.st.relaxed.sys.global.v4.f32
  %all = comms.multimem %w of %team : !comms.window<64xbf16> -> memref<64xbf16, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%c0] : memref<64xbf16, #comms.space<multimem>> -> tensor<8xbf16>
  comms.multimem_store %sum, %all[%c8] : tensor<8xbf16>, memref<64xbf16, #comms.space<multimem>>
  comms.return
}
