// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<8xf32>) {
  // expected-error @+1 {{C1: the result is 'tensor<8xf32>'; it must be a tile of one 'f32'}}
  %b = comms.row_reduce sum %a : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-error @+1 {{C1: the result is 'tensor<1xf64>'}}
  %b = comms.row_reduce sum %a : tensor<8xf32> -> tensor<1xf64>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-error @+1 {{C1: the result is 'vector<1xf32>'}}
  %b = comms.row_reduce sum %a : tensor<8xf32> -> vector<1xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-error @+1 {{C2: xor of elements of 'f32'; bitwise reductions need integers}}
  %b = comms.row_reduce xor %a : tensor<8xf32> -> tensor<1xf32>
  return
}

// -----

func.func @f(%a: tensor<0xf32>) {
  // expected-error @+1 {{C3: the tile must have at least one element}}
  %b = comms.row_reduce sum %a : tensor<0xf32> -> tensor<1xf32>
  return
}
