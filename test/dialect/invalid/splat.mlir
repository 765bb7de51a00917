// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: f32) {
  // expected-error @+1 {{C1: a tile of 'bf16' from a scalar of 'f32'}}
  %b = comms.splat %a : f32 -> tensor<8xbf16>
  return
}
