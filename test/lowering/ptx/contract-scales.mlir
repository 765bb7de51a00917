// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_90" -o %t90
// RUN: FileCheck %s < %t90
// RUN: FileCheck %s --check-prefix=ADDS < %t90
// RUN: %ptxas -arch=sm_90a -v %t90 -o %t90.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: %ptxas -arch=sm_90a -c -v %t90 -o %t90.o 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_80" -o %t80
// RUN: FileCheck %s --check-prefix=WARPS < %t80
// RUN: %ptxas -arch=sm_80 -v %t80 -o %t80.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS

// Block scales: the sums of 128 terms begin with 0, and are multiplied and added
// in f32. A tile begins with a multiple of 64 columns, so that three scales are
// loaded for the 192 columns of a thread, and two for its rows, once a stage,
// before it is waited for.
// CHECK-LABEL: .entry blocks(
// CHECK-COUNT-5: ld.global.b32
// CHECK-NOT: ld.global.b32
// CHECK: mbarrier.try_wait
// CHECK: wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3 {{.*}}, q, 1, 1;
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3
// CHECK: wgmma.wait_group.sync.aligned 0
// ADDS-COUNT-96: fma.rn.f32
// ADDS-NOT: fma.rn.f32
// CHECK: elect.sync
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// WARPS: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// WARPS: fma.rn.f32
comms.kernel @blocks(%a: memref<1024x1024xf8E4M3FN>, %as: memref<1024x8xf32>, %b: memref<768x1024xf8E4M3FN>, %bs: memref<6x8xf32>,
                     %c: memref<1024x768xbf16>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %c1024 = arith.constant 1024 : index
  %block = comms.block_id
  %down = arith.divui %block, %c4 : index
  %right = arith.remui %block, %c4 : index
  %i = arith.muli %down, %c128 : index
  %j = arith.muli %right, %c192 : index
  comms.contract %a[%i, %c0], %b[%j, %c0] to %c[%i, %j] tile [128, 192] depth %c1024 scaled by %as, %bs {transpose_rhs}
    : memref<1024x1024xf8E4M3FN>, memref<768x1024xf8E4M3FN>, memref<1024x768xbf16> scaled by memref<1024x8xf32>, memref<6x8xf32>
  comms.return
}
