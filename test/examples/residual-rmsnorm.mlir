// EXEC: comms.all_reduce comms.row_reduce comms.broadcast_row
// RUN: rm -rf %t && %python %S/make.py residual-rmsnorm %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy --input residual=%t/residual-%r.npy --input weight=%t/weight-%r.npy \
// RUN:   --expect y=%t/y-%r.npy --expect next=%t/next-%r.npy

// All-reduce, add the residual, RMSNorm: two results, the normalized rows and
// the residual of the next layer.
comms.kernel @residual_rmsnorm(%x: !comms.window<6x96xbf16>, %residual: memref<6x96xbf16>,
                               %weight: memref<96xbf16>, %y: memref<6x96xbf16>, %next: memref<6x96xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<6x96xbf16>)
      outs(%y, %next : memref<6x96xbf16>, memref<6x96xbf16>)
      args(%residual, %weight : memref<6x96xbf16>, memref<96xbf16>)
  consume (%sum: tensor<96xf32>, %r: tensor<96xbf16>, %w: tensor<96xbf16>) {
    %rest = arith.extf %r : tensor<96xbf16> to tensor<96xf32>
    %added = arith.addf %sum, %rest : tensor<96xf32>
    %squares = arith.mulf %added, %added : tensor<96xf32>
    %total = comms.row_reduce sum %squares : tensor<96xf32> -> tensor<1xf32>
    %count = arith.constant dense<96.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %factor = math.rsqrt %safe : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<96xf32>
    %normal = arith.mulf %added, %factors : tensor<96xf32>
    %wide = arith.extf %w : tensor<96xbf16> to tensor<96xf32>
    %scaled = arith.mulf %normal, %wide : tensor<96xf32>
    %out = arith.truncf %scaled : tensor<96xf32> to tensor<96xbf16>
    %kept = arith.truncf %added : tensor<96xf32> to tensor<96xbf16>
    comms.yield %out, %kept : tensor<96xbf16>, tensor<96xbf16>
  }
  comms.return
}
