// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<2xf32>) {
  // expected-error @+1 {{C1: the operand is 'tensor<2xf32>'; it must be a tile of one element}}
  %b = comms.broadcast_row %a : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<?xf32>) {
  // expected-error @+1 {{C1: the operand is 'tensor<?xf32>'}}
  %b = comms.broadcast_row %a : tensor<?xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<1xf32>) {
  // expected-error @+1 {{C2: a tile of 'f16' from a tile of 'f32'}}
  %b = comms.broadcast_row %a : tensor<1xf32> -> tensor<8xf16>
  return
}

// -----

func.func @f(%a: tensor<1xf32>) {
  // expected-error @+1 {{C2: a tile of}}
  %b = comms.broadcast_row %a : tensor<1xf32> -> vector<8xf32>
  return
}
