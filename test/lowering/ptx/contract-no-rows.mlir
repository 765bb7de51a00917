// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 threads=128 chip=sm_90" -o %t
// RUN: FileCheck %s --implicit-check-not=wgmma < %t
// RUN: %ptxas -arch=sm_90a %t -o %t.cubin

// A product without rows multiplies nothing, but the maps of its operands are
// made: by instructions of sm_90a.
// CHECK: .target sm_90a
// CHECK: tensormap.replace
comms.kernel @no_rows(%a: memref<64x128xbf16>, %b: memref<128x64xbf16>, %c: memref<64x64xf32>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = comms.block_id
  %begin = arith.muli %block, %c64 : index
  scf.for %i = %begin to %c0 step %c64 {
    comms.contract %a[%i, %c0], %b[%c0, %c0] to %c[%i, %c0] tile [64, 64] depth %c128
      : memref<64x128xbf16>, memref<128x64xbf16>, memref<64x64xf32>
  }
  comms.return
}
