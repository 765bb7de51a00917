// The sum over all ranks, plus a residual, normalized row by row: what follows
// a tensor-parallel layer, as one kernel. Two results: the normalized rows, and
// the residual of the next layer.
comms.kernel @allreduce_residual_rmsnorm(%x: !comms.window<?x64xbf16>, %residual: memref<?x64xbf16>,
                                         %weight: memref<64xbf16>, %y: memref<?x64xbf16>,
                                         %next: memref<?x64xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<?x64xbf16>)
      outs(%y, %next : memref<?x64xbf16>, memref<?x64xbf16>)
      args(%residual, %weight : memref<?x64xbf16>, memref<64xbf16>)
  consume (%sum: tensor<64xf32>, %r: tensor<64xbf16>, %w: tensor<64xbf16>) {
    %rest = arith.extf %r : tensor<64xbf16> to tensor<64xf32>
    %added = arith.addf %sum, %rest : tensor<64xf32>
    %squares = arith.mulf %added, %added : tensor<64xf32>
    %total = comms.row_reduce sum %squares : tensor<64xf32> -> tensor<1xf32>
    %count = arith.constant dense<64.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-6> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %factor = math.rsqrt %safe : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<64xf32>
    %normal = arith.mulf %added, %factors : tensor<64xf32>
    %scale = arith.extf %w : tensor<64xbf16> to tensor<64xf32>
    %scaled = arith.mulf %normal, %scale : tensor<64xf32>
    %out = arith.truncf %scaled : tensor<64xf32> to tensor<64xbf16>
    %kept = arith.truncf %added : tensor<64xf32> to tensor<64xbf16>
    comms.yield %out, %kept : tensor<64xbf16>, tensor<64xbf16>
  }
  comms.return
}
