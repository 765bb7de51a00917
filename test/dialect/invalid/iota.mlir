// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{C1: elements of 'bf16' do not count; use integers of 8 to 64 bits, f32 or f64}}
  %b = comms.iota : tensor<8xbf16>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C1: elements of 'i1' do not count}}
  %b = comms.iota : tensor<8xi1>
  return
}
