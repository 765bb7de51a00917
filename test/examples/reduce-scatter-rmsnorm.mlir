// EXEC: comms.reduce_scatter comms.row_reduce
// RUN: rm -rf %t && %python %S/make.py reduce-scatter-rmsnorm %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy --input weight=%t/weight-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// Each rank gets two rows of the sum, and normalizes those alone.
comms.kernel @reduce_scatter_rmsnorm(%x: !comms.window<8x72xf32>, %weight: memref<72xf32>, %y: memref<2x72xf32>) {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : !comms.window<8x72xf32>) outs(%y : memref<2x72xf32>)
      args(%weight : memref<72xf32>)
  consume (%sum: tensor<72xf32>, %w: tensor<72xf32>) {
    %squares = arith.mulf %sum, %sum : tensor<72xf32>
    %total = comms.row_reduce sum %squares : tensor<72xf32> -> tensor<1xf32>
    %count = arith.constant dense<72.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %factor = math.rsqrt %safe : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<72xf32>
    %normal = arith.mulf %sum, %factors : tensor<72xf32>
    %out = arith.mulf %normal, %w : tensor<72xf32>
    comms.yield %out : tensor<72xf32>
  }
  comms.return
}
