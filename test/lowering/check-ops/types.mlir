// RUN: comms-opt %s -split-input-file -verify-diagnostics -comms-check-ops

// Wider integers are divided by functions of a library.

comms.kernel @wide(%a: i32) {
  // expected-error @+1 {{'arith.extsi' op has a value of type 'i128', which kernels do not have: they hold integers of 1 to 64 bits}}
  %b = arith.extsi %a : i32 to i128
  comms.return
}

// -----

comms.kernel @scalable(%f: f32) {
  // expected-error @+1 {{has a value of type 'vector<[4]xf32>', which kernels do not have}}
  %v = vector.broadcast %f : f32 to vector<[4]xf32>
  comms.return
}

// -----

comms.kernel @dimensions() {
  // expected-error @+1 {{at most 16 dimensions}}
  %s = comms.scratch : memref<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
  comms.return
}
