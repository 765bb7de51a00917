// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false ranks=4 threads=1" --each "chip=sm_90|chip=sm_100" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=2 check=false threads=1" | FileCheck %s --check-prefix=PTX
// CHECK: 2 variants assemble

// The multicast address follows the parts of the window.
// PTX-LABEL: .entry bf16(
// PTX: bf16_param_0[88]
// PTX: ld.param.b64 {{.*}}[bf16_param_0+80]
// PTX: multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2
// PTX: multimem.st.relaxed.sys.global.v4.f32
// PTX: multimem.red.relaxed.sys.global.add.v4.bf16x2
comms.kernel @bf16(%w: !comms.window<64xbf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xbf16> -> memref<64xbf16, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%c0] : memref<64xbf16, #comms.space<multimem>> -> tensor<8xbf16>
  comms.multimem_store %sum, %all[%c8] : tensor<8xbf16>, memref<64xbf16, #comms.space<multimem>>
  comms.multimem_reduce sum %sum, %all[%c8] : tensor<8xbf16>, memref<64xbf16, #comms.space<multimem>>
  comms.return
}

// PTX-LABEL: .entry i32(
// PTX-COUNT-8: multimem.ld_reduce.relaxed.sys.global.max.s32
// PTX-COUNT-8: multimem.red.relaxed.sys.global.add.u32
comms.kernel @i32(%w: !comms.window<64xi32>) {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xi32> -> memref<64xi32, #comms.space<multimem>>
  %most = comms.multimem_load_reduce max %all[%c0] : memref<64xi32, #comms.space<multimem>> -> tensor<8xi32>
  comms.multimem_reduce sum %most, %all[%c0] : tensor<8xi32>, memref<64xi32, #comms.space<multimem>>
  comms.return
}

// Words of 64 bits have no vectors.
// PTX-LABEL: .entry i64(
// PTX-COUNT-8: multimem.ld_reduce.relaxed.sys.global.min.s64
// PTX-COUNT-8: multimem.red.relaxed.sys.global.add.u64
// PTX-COUNT-8: multimem.red.relaxed.sys.global.xor.b64
comms.kernel @i64(%w: !comms.window<64xi64>) {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xi64> -> memref<64xi64, #comms.space<multimem>>
  %least = comms.multimem_load_reduce min %all[%c0] : memref<64xi64, #comms.space<multimem>> -> tensor<8xi64>
  comms.multimem_reduce sum %least, %all[%c0] : tensor<8xi64>, memref<64xi64, #comms.space<multimem>>
  comms.multimem_reduce xor %least, %all[%c0] : tensor<8xi64>, memref<64xi64, #comms.space<multimem>>
  comms.return
}

// PTX-LABEL: .entry f64(
// PTX-COUNT-8: multimem.ld_reduce.relaxed.sys.global.add.f64
// PTX-COUNT-8: multimem.red.relaxed.sys.global.add.f64
comms.kernel @f64(%w: !comms.window<64xf64>) {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xf64> -> memref<64xf64, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%c0] : memref<64xf64, #comms.space<multimem>> -> tensor<8xf64>
  comms.multimem_reduce sum %sum, %all[%c0] : tensor<8xf64>, memref<64xf64, #comms.space<multimem>>
  comms.return
}
