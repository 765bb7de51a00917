// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --allow-fma --each "ranks=1 blocks=1 threads=1 chip=sm_100" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=1 threads=1 chip=sm_100" | FileCheck %s --check-prefix=PTX
// CHECK: 1 variants assemble
// PTX-NOT: f32x2{{[^.]}}

// On sm_100, where two f32 fit one register, LLVM 22 also made a vector of two i32 here, could not select it, and ended the process.
comms.kernel @pairs(%x: memref<71xf8E4M3FN>, %h: memref<71xbf16>, %y: memref<71xf8E4M3FN>) attributes {blocks = 1 : i64} {
  %c16 = arith.constant 16 : index
  %c22 = arith.constant 22 : index
  %c28 = arith.constant 28 : index
  %c37 = arith.constant 37 : index
  %a = comms.tile_load %x[%c37] : memref<71xf8E4M3FN> -> tensor<7xf8E4M3FN>
  %b = comms.tile_load %h[%c16] : memref<71xbf16> -> tensor<7xbf16>
  %c = arith.truncf %b : tensor<7xbf16> to tensor<7xf8E4M3FN>
  %d = comms.tile_load %x[%c22] : memref<71xf8E4M3FN> -> tensor<7xf8E4M3FN>
  %e = math.fma %a, %d, %c : tensor<7xf8E4M3FN>
  comms.tile_store %e, %y[%c28] : tensor<7xf8E4M3FN>, memref<71xf8E4M3FN>
  comms.return
}
