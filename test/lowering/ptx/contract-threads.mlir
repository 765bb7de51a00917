// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=512 chip=sm_80" -o %t80
// RUN: %ptxas -arch=sm_80 -v %t80 -o %t80.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=512 chip=sm_90" -o %t90
// RUN: FileCheck %s --check-prefix=MANY < %t90
// RUN: %ptxas -arch=sm_90a -v %t90 -o %t90.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=1024 chip=sm_90" -o %t90
// RUN: FileCheck %s --check-prefix=MOST < %t90
// RUN: %ptxas -arch=sm_90a -v %t90 -o %t90.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=1024 chip=sm_100" -o %t100
// RUN: %ptxas -arch=sm_100 -v %t100 -o %t100.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS

// Threads of larger CTAs have fewer registers, so they have fewer sums: a tile
// is computed in more parts. 544 threads have 96 registers each, 1024 have 64.
// MANY: .reqntid 544
// MANY: wgmma.mma_async.sync.aligned.m64n{{(16|32|48|64|80|96)}}k16
// MOST: .reqntid 1024
// MOST: wgmma.mma_async.sync.aligned.m64n{{(16|32|48)}}k16
// SPILLS-NOT: C7602
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
comms.kernel @product(%a: memref<256x256xf16>, %b: memref<256x256xf16>, %c: memref<256x256xf16>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [256, 256] depth %c256 {transpose_rhs}
    : memref<256x256xf16>, memref<256x256xf16>, memref<256x256xf16>
  comms.return
}
