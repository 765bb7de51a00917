// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: f32, %b: f32) {
  // expected-error @+1 {{C1: exp takes one value, not 2}}
  %c = comms.math exp(%a, %b) : f32
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-error @+1 {{C1: powf takes two values, not 1}}
  %c = comms.math powf(%a) : tensor<8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{expected 1 or more operands, but found 0}}
  %c = comms.math sin() : f32
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @+1 {{must be variadic of floating-point-like, but got 'i32'}}
  %c = comms.math sin(%a) : i32
  return
}
