// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/make.py two-operands %t --ranks 3
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,ll128 --blocks 1,2 \
// RUN:   %s --ranks 3 --launches 3 --rtol 2e-3 --atol 6e-3 \
// RUN:   --input a=%t/a-%r.npy --input b=%t/b-%r.npy \
// RUN:   --expect product=%t/product-%r.npy --expect larger=%t/larger-%r.npy

// Two arrays of different types are reduced together; two results come of both.
comms.kernel @two_operands(%a: !comms.window<300xf32>, %b: !comms.window<300xf16>,
                           %product: memref<300xf32>, %larger: memref<300xf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%a, %b : !comms.window<300xf32>, !comms.window<300xf16>)
      outs(%product, %larger : memref<300xf32>, memref<300xf16>)
  consume (%gate: tensor<300xf32>, %value: tensor<300xf32>) {
    %times = arith.mulf %gate, %value : tensor<300xf32>
    %max = arith.maximumf %gate, %value : tensor<300xf32>
    %narrow = arith.truncf %max : tensor<300xf32> to tensor<300xf16>
    comms.yield %times, %narrow : tensor<300xf32>, tensor<300xf16>
  }
  comms.return
}
