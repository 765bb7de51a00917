// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_80" -o %t80
// RUN: FileCheck %s < %t80
// RUN: %ptxas -arch=sm_80 -v %t80 -o %t80.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_90" -o %t90
// RUN: FileCheck %s --check-prefix=MAPS < %t90
// RUN: FileCheck %s --check-prefix=PREFETCH < %t90
// RUN: %ptxas -arch=sm_90a -c -v %t90 -o %t90.o 2>&1 | FileCheck %s --check-prefix=SPILLS

// Addends are read 16 bytes a thread where all of the tile exists, and added
// before the sums are rounded; all sums stay in registers.
// CHECK-LABEL: .entry sum(
// CHECK: ld.global.{{.*}}v4.{{b|u}}32
// CHECK: shfl.sync.bfly
// CHECK: add.{{(rn.)?}}f32
// CHECK: st.global.v4
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}

// Where a thread copies the operands by maps, it copies the addends, too: two
// times four panels of 64 columns, three in a stage. They come to L2 while the
// operands are copied.
// MAPS-LABEL: .entry sum(
// MAPS-NOT: ld.global.{{.*}}v4
// MAPS-COUNT-32: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// MAPS-NOT: ldmatrix
// MAPS: st.global.v4
// PREFETCH-LABEL: .entry sum(
// PREFETCH-COUNT-1: cp.async.bulk.prefetch.tensor.2d.L2.global
// PREFETCH-NOT: cp.async.bulk.prefetch
comms.kernel @sum(%a: memref<512x512xbf16>, %b: memref<512x512xbf16>, %d: memref<2x512x512xbf16>, %c: memref<512x512xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %c8 = arith.constant 8 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %tile = %block to %c8 step %blocks {
    %down = arith.divui %tile, %c2 : index
    %right = arith.remui %tile, %c2 : index
    %i = arith.muli %down, %c128 : index
    %j = arith.muli %right, %c256 : index
    %second = arith.addi %i, %c512 : index
    comms.contract %a[%i, %c0], %b[%c0, %j] to %c[%i, %j] tile [128, 256] depth %c512 plus %d[%i, %j], %d[%second, %j]
      : memref<512x512xbf16>, memref<512x512xbf16>, memref<512x512xbf16> plus memref<2x512x512xbf16>, memref<2x512x512xbf16>
  }
  comms.return
}
