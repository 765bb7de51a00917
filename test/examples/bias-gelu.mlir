// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/make.py bias-gelu %t --ranks 3
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 3 --launches 3 \
// RUN:   --input x=%t/x-%r.npy --input bias=%t/bias-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// All-reduce of f16, a bias for each column, GELU by its tanh formula.
comms.kernel @bias_gelu(%x: !comms.window<4x80xf16>, %bias: memref<80xf16>, %y: !comms.window<4x80xf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x80xf16>) outs(%y : !comms.window<4x80xf16>)
      args(%bias : memref<80xf16>)
  consume (%sum: tensor<80xf32>, %b: tensor<80xf16>) {
    %wide = arith.extf %b : tensor<80xf16> to tensor<80xf32>
    %v = arith.addf %sum, %wide : tensor<80xf32>
    %half = arith.constant dense<0.5> : tensor<80xf32>
    %one = arith.constant dense<1.0> : tensor<80xf32>
    %cubic = arith.constant dense<0.044715> : tensor<80xf32>
    %root = arith.constant dense<0.7978845608> : tensor<80xf32>
    %v2 = arith.mulf %v, %v : tensor<80xf32>
    %v3 = arith.mulf %v2, %v : tensor<80xf32>
    %bent = arith.mulf %cubic, %v3 : tensor<80xf32>
    %inner = arith.addf %v, %bent : tensor<80xf32>
    %angle = arith.mulf %root, %inner : tensor<80xf32>
    %tanh = math.tanh %angle : tensor<80xf32>
    %gate = arith.addf %one, %tanh : tensor<80xf32>
    %product = arith.mulf %v, %gate : tensor<80xf32>
    %gelu = arith.mulf %half, %product : tensor<80xf32>
    %out = arith.truncf %gelu : tensor<80xf32> to tensor<80xf16>
    comms.yield %out : tensor<80xf16>
  }
  comms.return
}
