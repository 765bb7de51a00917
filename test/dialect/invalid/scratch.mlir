// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k() {
  // expected-error @+1 {{C1: scratch memory is 'memref<?xf32>'; it needs a static shape of rank 1 or more and identity layout}}
  %a = comms.scratch : memref<?xf32>
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C1: scratch memory is 'memref<f32>'}}
  %a = comms.scratch : memref<f32>
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C2: scratch memory is in the default memory space, in #comms.space<scratch> or in #comms.space<shared>, not in #comms.space<multimem>}}
  %a = comms.scratch : memref<4xf32, #comms.space<multimem>>
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C3: scratch memory holds floats or integers that fit in 2^63 bytes, not 'memref<4xindex>'}}
  %a = comms.scratch : memref<4xindex>
  comms.return
}

// -----

comms.kernel @k() {
  // expected-error @+1 {{C3: scratch memory holds floats or integers}}
  %a = comms.scratch : memref<4294967296x4294967296xf32>
  comms.return
}
