// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=128 chip=sm_80" | FileCheck %s

// A product ends with a barrier and the next one begins with one: there is one between them.
// CHECK-LABEL: .entry two(
// CHECK: mma.sync
// CHECK: st.global
// CHECK: bar.sync
// CHECK-NOT: bar.sync
// CHECK: cp.async
// CHECK: mma.sync
comms.kernel @two(%x: memref<128x72xbf16>, %w: memref<72x64xbf16>, %y: memref<128x64xbf16>, %v: memref<64x64xbf16>, %z: memref<128x64xf32>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  comms.contract %x[%c0, %c0], %w[%c0, %c0] to %y[%c0, %c0] tile [128, 64] depth %c72
    : memref<128x72xbf16>, memref<72x64xbf16>, memref<128x64xbf16>
  comms.contract %y[%c0, %c0], %v[%c0, %c0] to %z[%c0, %c0] tile [128, 64] depth %c64
    : memref<128x64xbf16>, memref<64x64xbf16>, memref<128x64xf32>
  comms.return
}
