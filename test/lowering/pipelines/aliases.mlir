// The names that passes had work, with a warning, alone and inside of a kernel's pipeline.
// RUN: comms-opt %s --comms-drop-licences 2>&1 | FileCheck %s --check-prefixes=DROP,STRIPPED
// RUN: comms-opt %s --pass-pipeline="builtin.module(comms.kernel(comms-drop-licences))" 2>&1 \
// RUN:   | FileCheck %s --check-prefixes=DROP,STRIPPED
// RUN: comms-opt %s --comms-pin-arithmetic 2>&1 | FileCheck %s --check-prefixes=PIN,STRIPPED

// DROP: warning: the pass comms-drop-licences is now called comms-strip-fast-math; the old name will go away
// PIN: warning: the pass comms-pin-arithmetic is now called comms-legalize-numerics; the old name will go away
// STRIPPED-LABEL: comms.kernel @k
// STRIPPED-NOT: fastmath
// STRIPPED: arith.addf
comms.kernel @k(%x: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<1xf32>
  %1 = arith.addf %0, %0 fastmath<fast> : f32
  memref.store %1, %x[%c0] : memref<1xf32>
  comms.return
}
