// REQUIRES: ptxas
// RUN: split-file %s %t
// RUN: comms-translate --comms-to-ptx %t/bytes.mlir --gpu="ranks=1 threads=256 chip=sm_90" -o %t/bytes.ptx
// RUN: FileCheck %t/bytes.mlir < %t/bytes.ptx
// RUN: FileCheck %t/bytes.mlir --check-prefix=ADDS < %t/bytes.ptx
// RUN: %ptxas -arch=sm_90a -v %t/bytes.ptx -o %t/bytes.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: %ptxas -arch=sm_90a -c -v %t/bytes.ptx -o %t/bytes.o 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %t/odd.mlir --gpu="ranks=1 threads=256 chip=sm_90" | FileCheck %t/odd.mlir
// RUN: comms-translate --comms-to-ptx %t/turned.mlir --gpu="ranks=1 threads=256 chip=sm_90" | FileCheck %t/odd.mlir
// RUN: comms-translate --comms-to-ptx %t/bytes.mlir --gpu="ranks=1 threads=256 chip=sm_80" | FileCheck %s --check-prefix=WARPS

// Elements of 8 bits by groups of four warps. Everything else gets them as f16.
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// WARPS-NOT: e4m3
// WARPS: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

//--- bytes.mlir
// Of 192 columns of a group, 96 are multiplied, and then the others; each of
// their sums begins with 0.
// CHECK: tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [{{.*}}], 0, {{.*}}
// CHECK: wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e5m2 {{.*}}, q, 1, 1; wgmma{{.*}}, p, 1, 1; wgmma{{.*}}, p, 1, 1; wgmma{{.*}}, p, 1, 1; }
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e5m2
// CHECK: wgmma.wait_group.sync.aligned 0
// ADDS-COUNT-96: add.rn.f32
// ADDS-NOT: add.rn.f32
comms.kernel @bytes(%a: memref<128x512xf8E4M3FN>, %b: memref<192x512xf8E5M2>, %c: memref<128x192xbf16>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [128, 192] depth %c512 {transpose_rhs}
    : memref<128x512xf8E4M3FN>, memref<192x512xf8E5M2>, memref<128x192xbf16>
  comms.return
}

//--- odd.mlir
// A depth of 64 is half of a stage.
// CHECK-NOT: e4m3
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
comms.kernel @odd(%a: memref<128x192xf8E4M3FN>, %b: memref<128x192xf8E4M3FN>, %c: memref<128x128xf32>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [128, 128] depth %c192 {transpose_rhs}
    : memref<128x192xf8E4M3FN>, memref<128x192xf8E4M3FN>, memref<128x128xf32>
  comms.return
}

//--- turned.mlir
// Instructions of 8 bits want the terms side by side.
comms.kernel @turned(%a: memref<128x256xf8E4M3FN>, %b: memref<256x128xf8E4M3FN>, %c: memref<128x128xf32>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [128, 128] depth %c256
    : memref<128x256xf8E4M3FN>, memref<256x128xf8E4M3FN>, memref<128x128xf32>
  comms.return
}
