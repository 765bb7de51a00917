// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=256 chip=sm_90" -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: %ptxas -arch=sm_90a -c -v %t.ptx -o %t.o 2>&1 | FileCheck %s --check-prefix=SPILLS

// A depth that is no multiple of 128, and terms that do not lie side by side:
// fp8 becomes f16, and the sums of 64 terms, which begin with 0, are multiplied
// by the scales of their block. What memory holds is added last.
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, q, 1, 1
// CHECK: fma.rn.f32
// CHECK: add.rn.f32
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
comms.kernel @odd(%a: memref<128x192xf8E4M3FN>, %as: memref<128x2xf32>, %b: memref<192x128xf8E4M3FN>, %bs: memref<2x1xf32>,
                     %c: memref<128x128xbf16>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [128, 128] depth %c192 scaled by %as, %bs {accumulate}
    : memref<128x192xf8E4M3FN>, memref<192x128xf8E4M3FN>, memref<128x128xbf16> scaled by memref<128x2xf32>, memref<2x1xf32>
  comms.return
}
