// EXEC: comms.all_reduce comms.row_reduce comms.broadcast_row
// RUN: rm -rf %t && %python %S/make.py layernorm %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 --rtol 1e-4 --atol 1e-4 \
// RUN:   --input x=%t/x-%r.npy --input gamma=%t/gamma-%r.npy --input beta=%t/beta-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// All-reduce, then LayerNorm: two row reductions, one after the other.
comms.kernel @layernorm(%x: !comms.window<5x100xf32>, %gamma: memref<100xf32>, %beta: memref<100xf32>,
                        %y: memref<5x100xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<5x100xf32>) outs(%y : memref<5x100xf32>)
      args(%gamma, %beta : memref<100xf32>, memref<100xf32>)
  consume (%sum: tensor<100xf32>, %g: tensor<100xf32>, %b: tensor<100xf32>) {
    %count = arith.constant dense<100.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %total = comms.row_reduce sum %sum : tensor<100xf32> -> tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %means = comms.broadcast_row %mean : tensor<1xf32> -> tensor<100xf32>
    %centered = arith.subf %sum, %means : tensor<100xf32>
    %squares = arith.mulf %centered, %centered : tensor<100xf32>
    %spread = comms.row_reduce sum %squares : tensor<100xf32> -> tensor<1xf32>
    %variance = arith.divf %spread, %count : tensor<1xf32>
    %safe = arith.addf %variance, %epsilon : tensor<1xf32>
    %factor = math.rsqrt %safe : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<100xf32>
    %normal = arith.mulf %centered, %factors : tensor<100xf32>
    %scaled = arith.mulf %normal, %g : tensor<100xf32>
    %out = arith.addf %scaled, %b : tensor<100xf32>
    comms.yield %out : tensor<100xf32>
  }
  comms.return
}
