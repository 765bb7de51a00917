// Roundings that the kernel asks for are neither left out nor joined, whatever its flags say and wherever MLIR's
// canonicaliser runs: an integer rounds to f64, or to f32, before it does to a narrower float.
// RUN: comms-opt %s --comms-to-cpu="ranks=1" | FileCheck %s --check-prefix=CPU
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=1 threads=64 chip=sm_90" | FileCheck %s --check-prefix=PTX
// CPU: llvm.sitofp {{.*}} : vector<16xi64> to vector<16xf64>
// CPU: llvm.fptrunc {{.*}} : vector<16xf64> to vector<16xf32>
// PTX-COUNT-2: cvt.rn.f32.s64
// PTX:         cvt.rn.bf16x2.f32
// PTX-NOT:     cvt.rn.bf16.s64
comms.kernel @roundings(%a: memref<128xi64>, %x: memref<128xf32>, %y: memref<128xbf16>, %z: memref<128xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %a[%c0] : memref<128xi64> -> tensor<128xi64>
  %narrow = arith.sitofp %t : tensor<128xi64> to tensor<128xbf16>
  comms.tile_store %narrow, %y[%c0] : tensor<128xbf16>, memref<128xbf16>
  %wide = arith.sitofp %t : tensor<128xi64> to tensor<128xf64>
  %twice = arith.truncf %wide : tensor<128xf64> to tensor<128xf32>
  comms.tile_store %twice, %z[%c0] : tensor<128xf32>, memref<128xf32>
  %f = comms.tile_load %x[%c0] : memref<128xf32> -> tensor<128xf32>
  %there = arith.truncf %f fastmath<contract> : tensor<128xf32> to tensor<128xbf16>
  %back = arith.extf %there fastmath<contract> : tensor<128xbf16> to tensor<128xf32>
  comms.tile_store %back, %x[%c0] : tensor<128xf32>, memref<128xf32>
  comms.return
}
