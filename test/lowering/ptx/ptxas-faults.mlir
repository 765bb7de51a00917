// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "ranks=1 blocks=1 threads=64" --each "chip=sm_90|chip=sm_100" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=1 threads=64 chip=sm_90" | FileCheck %s --check-prefix=PTX
// CHECK: 2 variants assemble

// What ptxas 13.0 makes other code of than PTX says (lowering/nvvm/PtxasFaults.h) is written in another way.

// Half of a number is stored as what lies there, and not as an integer of its value.
// PTX-LABEL: .entry half_of_f64(
// PTX: selp.f64 [[X:%rd[0-9]+]], 0d7FF8000000000000
// PTX: cvt.u32.u64 [[LOW:%neww[0-9]+]], [[X]];
// PTX-NEXT: st.global.b32 [{{.*}}], [[LOW]];
comms.kernel @half_of_f64(%x: memref<8xf64>, %y: memref<8xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = comms.tile_load %x[%c0] : memref<8xf64> -> tensor<1xf64>
  %b = comms.tile_load %x[%c1] : memref<8xf64> -> tensor<1xf64>
  %c = arith.addf %a, %b : tensor<1xf64>
  %d = arith.bitcast %c : tensor<1xf64> to tensor<1xi64>
  comms.tile_store %d, %y[%c0] : tensor<1xi64>, memref<8xi64>
  comms.return
}

// Two pairs of fp8 of which a half is stored alone are joined by a shift; where words alone are used, ptxas may merge.
// PTX-LABEL: .entry halves_of_fp8(
// PTX: cvt.rn.satfinite.e4m3x2.f32 [[A:%rs[0-9]+]]
// PTX: cvt.rn.satfinite.e4m3x2.f32 [[B:%rs[0-9]+]]
// PTX-NOT: mov.b32 {{%r[0-9]+}}, {[[A]], [[B]]}
// PTX: cvt.u32.u16 [[LOW:%neww[0-9]+]], [[A]];
// PTX-NEXT: cvt.u32.u16 [[HIGH:%neww[0-9]+]], [[B]];
// PTX-NEXT: shl.b32 [[UP:%neww[0-9]+]], [[HIGH]], 16;
// PTX-NEXT: or.b32 {{%r[0-9]+}}, [[LOW]], [[UP]];
comms.kernel @halves_of_fp8(%x: memref<70xf32>, %y: memref<80xi8>, %z: memref<80xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = comms.tile_load %x[%c0] : memref<70xf32> -> tensor<70xf32>
  %b = arith.truncf %a : tensor<70xf32> to tensor<70xf8E4M3FN>
  comms.tile_store %b, %z[%c2] : tensor<70xf8E4M3FN>, memref<80xf8E4M3FN>
  %i = arith.bitcast %b : tensor<70xf8E4M3FN> to tensor<70xi8>
  %m = arith.constant dense<85> : tensor<70xi8>
  %j = arith.xori %i, %m : tensor<70xi8>
  comms.tile_store %j, %y[%c0] : tensor<70xi8>, memref<80xi8>
  comms.return
}

// PTX-LABEL: .entry words_of_fp8(
// PTX-NOT: %new
// PTX: mov.b32 {{%r[0-9]+}}, {%rs{{[0-9]+}}, %rs{{[0-9]+}}}
// PTX-NOT: %new
comms.kernel @words_of_fp8(%x: memref<128xf32>, %y: memref<128xi8>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<128xf32> -> tensor<128xf32>
  %b = arith.truncf %a : tensor<128xf32> to tensor<128xf8E4M3FN>
  %i = arith.bitcast %b : tensor<128xf8E4M3FN> to tensor<128xi8>
  %m = arith.constant dense<85> : tensor<128xi8>
  %j = arith.xori %i, %m : tensor<128xi8>
  comms.tile_store %j, %y[%c0] : tensor<128xi8>, memref<128xi8>
  comms.return
}

// A sum of two halves is two sums; what may not fit 16 bits is computed in 32; the least number has no absolute value.
// PTX-LABEL: .entry integers(
// PTX-NOT: {{add.s16x2|abs.s16|neg.s16}}
// PTX: add.s16 {{%newh[0-9]+}}
// PTX: cvt.s32.s16 [[WIDE:%neww[0-9]+]], {{%rs[0-9]+}};
// PTX-NEXT: abs.s32 [[SIZE:%neww[0-9]+]], [[WIDE]];
// PTX-NEXT: cvt.u16.u32 {{%rs[0-9]+}}, [[SIZE]];
// PTX: shr.s32 [[SIGN:%neww[0-9]+]], [[Y:%r[0-9]+]], 31;
// PTX-NEXT: xor.b32 [[OTHER:%neww[0-9]+]], [[Y]], [[SIGN]];
// PTX-NEXT: sub.s32 {{%r[0-9]+}}, [[OTHER]], [[SIGN]];
comms.kernel @integers(%x: memref<64xi16>, %s: memref<64xi16>, %y: memref<64xi32>, %z: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<64xi16> -> tensor<33xi16>
  %one = arith.constant dense<1> : tensor<33xi16>
  %b = arith.addi %a, %one : tensor<33xi16>
  comms.tile_store %b, %s[%c0] : tensor<33xi16>, memref<64xi16>
  %c = math.absi %a : tensor<33xi16>
  %d = arith.extsi %c : tensor<33xi16> to tensor<33xi32>
  comms.tile_store %d, %y[%c0] : tensor<33xi32>, memref<64xi32>
  %e = comms.tile_load %z[%c0] : memref<64xi32> -> tensor<33xi32>
  %f = math.absi %e : tensor<33xi32>
  comms.tile_store %f, %z[%c0] : tensor<33xi32>, memref<64xi32>
  comms.return
}
