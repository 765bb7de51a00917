// What folders would give other bits: functions of constants, by the host's libm; integers and f8E4M3FN, in the narrow
// type itself.
// RUN: comms-opt %s --comms-strip-fast-math | FileCheck %s
// RUN: comms-opt %s --comms-strip-fast-math --canonicalize | FileCheck %s --check-prefix=FOLDED

comms.kernel @k(%y: memref<8xf32>, %z: memref<8xf8E4M3FN>, %w: memref<8xbf16>) attributes {ranks = 2} {
  %c0 = arith.constant 0 : index
  // Exact functions stay, and are folded.
  %x = arith.constant dense<2.5> : tensor<8xf32>
  // CHECK: math.floor
  // FOLDED-NOT: math.floor
  %floor = math.floor %x : tensor<8xf32>
  // CHECK: comms.math sin(%{{.*}}) : tensor<8xf32>
  // FOLDED: comms.math sin(%[[X:.*]]) : tensor<8xf32>
  %sine = math.sin %floor fastmath<afn> : tensor<8xf32>
  // CHECK: comms.math powf(%{{.*}}, %{{.*}}) : tensor<8xf32>
  // FOLDED: comms.math powf
  %power = math.powf %sine, %x : tensor<8xf32>
  comms.tile_store %power, %y[%c0] : tensor<8xf32>, memref<8xf32>

  // CHECK: %[[A:.*]] = arith.extf %[[F:.*]] : tensor<8xf8E4M3FN> to tensor<8xf32>
  // CHECK: %[[B:.*]] = arith.extf %[[F]] : tensor<8xf8E4M3FN> to tensor<8xf32>
  // CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : tensor<8xf32>
  // CHECK: arith.truncf %[[S]] : tensor<8xf32> to tensor<8xf8E4M3FN>
  // FOLDED: arith.truncf %{{.*}} : tensor<8xf32> to tensor<8xf8E4M3FN>
  %most = arith.constant dense<448.0> : tensor<8xf8E4M3FN>
  %twice = arith.addf %most, %most : tensor<8xf8E4M3FN>
  comms.tile_store %twice, %z[%c0] : tensor<8xf8E4M3FN>, memref<8xf8E4M3FN>

  // CHECK: %[[I:.*]] = arith.sitofp %{{.*}} : i64 to f32
  // CHECK: arith.truncf %[[I]] : f32 to bf16
  %n = arith.constant 36310271995674625 : i64
  %near = arith.sitofp %n : i64 to bf16
  memref.store %near, %w[%c0] : memref<8xbf16>
  comms.return
}
