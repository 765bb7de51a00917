// RUN: not comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=256 chip=sm_80" 2>&1 | FileCheck %s
// RUN: not comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=256 chip=sm_120" 2>&1 | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=256 chip=sm_90" | FileCheck %s --check-prefix=FITS

// What the kernel's own memory leaves is too little for the least stages of a
// product. A chip with more of it makes the product in parts. sm_120 has less of it
// than sm_90.
// CHECK: error: 'comms.contract' op needs {{[0-9]+}} bytes of shared memory in addition to the kernel's own, of which {{[0-9]+}} are left: use less scratch memory
// FITS: wgmma.mma_async
comms.kernel @crowded(%a: memref<128x64xbf16>, %b: memref<64x128xbf16>, %c: memref<128x128xf32>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %own = comms.scratch : memref<37000xf32>
  %zero = arith.constant dense<0.0> : tensor<37000xf32>
  comms.tile_store %zero, %own[%c0] : tensor<37000xf32>, memref<37000xf32>
  comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%c0, %c0] tile [128, 128] depth %c64
    : memref<128x64xbf16>, memref<64x128xbf16>, memref<128x128xf32>
  %t = comms.tile_load %own[%c64] : memref<37000xf32> -> tensor<128xf32>
  comms.tile_store %t, %c[%c0] : tensor<128xf32>, memref<128x128xf32>
  comms.return
}
