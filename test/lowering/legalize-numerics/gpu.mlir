// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-legalize-numerics{chip=sm_90}))' | FileCheck %s
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-legalize-numerics{chip=sm_80}))' | FileCheck %s --check-prefix=OLD

// Two elements of bf16 at a time: the instruction's NaN, 0x7FFF, becomes 0x7FC0.
// CHECK-LABEL: comms.kernel @round
// CHECK:         %[[PAIR:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:         %[[BITS:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<2xi16>
// CHECK:         %[[NAN:.*]] = arith.constant dense<32704> : vector<2xi16>
// CHECK:         arith.minsi %[[BITS]], %[[NAN]] : vector<2xi16>
// CHECK:         arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:         vector.bitcast %{{.*}} {comms.canonical} : vector<2xi32> to vector<4xbf16>
// OLD-LABEL: comms.kernel @round
// OLD:         arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
comms.kernel @round(%x: memref<4xf32>, %y: memref<4xbf16>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  %1 = arith.truncf %0 : vector<4xf32> to vector<4xbf16>
  vector.store %1, %y[%c0] : memref<4xbf16>, vector<4xbf16>
  comms.return
}

// A word holds two: one shift and one mask.
// CHECK-LABEL: comms.kernel @extend
// CHECK:         %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<4xbf16> to vector<2xi32>
// CHECK:         arith.shli %[[WORDS]]
// CHECK:         arith.andi %[[WORDS]]
// CHECK:         vector.shuffle %{{.*}} [0, 2, 1, 3] : vector<2xi32>, vector<2xi32>
comms.kernel @extend(%x: memref<4xbf16>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<4xbf16>, vector<4xbf16>
  %1 = arith.extf %0 : vector<4xbf16> to vector<4xf32>
  vector.store %1, %y[%c0] : memref<4xf32>, vector<4xf32>
  comms.return
}

// sm_80 has no instruction for f8E4M3FN.
// CHECK-LABEL: comms.kernel @quantize
// CHECK-COUNT-2: nvvm.convert.f32x2.to.f8x2 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8>(f8E4M3FN)
// OLD-LABEL: comms.kernel @quantize
// OLD-NOT:     convert.f32x2
// OLD:         arith.select
comms.kernel @quantize(%x: memref<4xf32>, %y: memref<4xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  %1 = arith.truncf %0 : vector<4xf32> to vector<4xf8E4M3FN>
  vector.store %1, %y[%c0] : memref<4xf8E4M3FN>, vector<4xf8E4M3FN>
  comms.return
}

// The instruction for f8E5M2 saturates, where these bits are infinity: integers
// make them. Read, it is the upper half of an f16.
// CHECK-LABEL: comms.kernel @e5m2
// CHECK-NOT:     convert.f32x2
// CHECK:         arith.constant dense<124> : vector<4xi32>
// CHECK:         %[[HALF:.*]] = arith.shli %{{.*}} : vector<4xi16>
// CHECK:         %[[F16:.*]] = arith.bitcast %[[HALF]] : vector<4xi16> to vector<4xf16>
// CHECK:         arith.extf %[[F16]] : vector<4xf16> to vector<4xf32>
comms.kernel @e5m2(%x: memref<4xf32>, %y: memref<4xf8E5M2>, %z: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  %1 = arith.truncf %0 : vector<4xf32> to vector<4xf8E5M2>
  vector.store %1, %y[%c0] : memref<4xf8E5M2>, vector<4xf8E5M2>
  %2 = vector.load %y[%c0] : memref<4xf8E5M2>, vector<4xf8E5M2>
  %3 = arith.extf %2 : vector<4xf8E5M2> to vector<4xf32>
  vector.store %3, %z[%c0] : memref<4xf32>, vector<4xf32>
  comms.return
}

// Of a constant, and of a single element, integers make the bits.
// CHECK-LABEL: comms.kernel @others
// CHECK-NOT:     arith.truncf
// CHECK:         comms.return
comms.kernel @others(%x: memref<4xf32>, %y: memref<4xbf16>) {
  %c0 = arith.constant 0 : index
  %nan = arith.constant dense<0xFFC00001> : vector<4xf32>
  %0 = arith.truncf %nan : vector<4xf32> to vector<4xbf16>
  vector.store %0, %y[%c0] : memref<4xbf16>, vector<4xbf16>
  %1 = memref.load %x[%c0] : memref<4xf32>
  %2 = arith.truncf %1 : f32 to bf16
  memref.store %2, %y[%c0] : memref<4xbf16>
  comms.return
}

// One over a root: two guesses of the GPU's, each with a step that makes it right, and no division.
// CHECK-LABEL: comms.kernel @root
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}} : f32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
// CHECK-COUNT-2: math.fma
// CHECK:         nvvm.rcp.approx.ftz.f
// CHECK-COUNT-2: math.fma
// CHECK:         arith.select %[[SMALL]]
// CHECK-NOT:     math.sqrt
comms.kernel @root(%x: memref<1xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<1xf32>
  %1 = math.rsqrt %0 : f32
  memref.store %1, %y[%c0] : memref<1xf32>
  comms.return
}

// Of f64 the GPU's own, which is exact.
// CHECK-LABEL: comms.kernel @wide_root
// CHECK:         math.sqrt %{{.*}} : f64
comms.kernel @wide_root(%x: memref<1xf64>, %y: memref<1xf64>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<1xf64>
  %1 = math.sqrt %0 : f64
  memref.store %1, %y[%c0] : memref<1xf64>
  comms.return
}
