// RUN: comms-opt %s -comms-strip-fast-math | FileCheck %s

// CHECK-LABEL: comms.kernel @again
// CHECK:       %[[X:.*]] = memref.load
// CHECK-NEXT:  %[[NARROW:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:  %[[WIDE:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK-NEXT:  memref.store %[[WIDE]]
comms.kernel @again(%x: memref<1xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<1xf32>
  %1 = arith.truncf %0 fastmath<contract> : f32 to bf16
  %2 = arith.extf %1 fastmath<contract> : bf16 to f32
  memref.store %2, %y[%c0] : memref<1xf32>
  comms.return
}
