// RUN: rm -rf %t && %python %S/bits.py fp8-rows %t
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x=%t/x-%r.npy --input residual=%t/residual-%r.npy --input weight=%t/weight-%r.npy \
// RUN:   --expect y=%t/y-%r.npy --expect next=%t/next-%r.npy --expect scale=%t/scale-%r.npy

// All-reduce + residual + RMSNorm, rows in fp8 with a scale each, as comms-bench has it (all_reduce_rmsnorm_fp8);
// rows of -0.0, of tiny and of huge numbers, with NaN and infinities.
comms.kernel @fp8_rows(%x: !comms.window<10x300xbf16>, %residual: memref<10x300xbf16>, %weight: memref<300xbf16>,
                       %y: memref<10x300xf8E4M3FN>, %next: memref<10x300xbf16>, %scale: memref<10x1xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<10x300xbf16>)
      outs(%y, %next, %scale : memref<10x300xf8E4M3FN>, memref<10x300xbf16>, memref<10x1xf32>)
      args(%residual, %weight : memref<10x300xbf16>, memref<300xbf16>)
  consume (%sum: tensor<300xf32>, %r: tensor<300xbf16>, %w: tensor<300xbf16>) {
    %rest = arith.extf %r : tensor<300xbf16> to tensor<300xf32>
    %added = arith.addf %sum, %rest : tensor<300xf32>
    %squares = arith.mulf %added, %added : tensor<300xf32>
    %total = comms.row_reduce sum %squares : tensor<300xf32> -> tensor<1xf32>
    %count = arith.constant dense<300.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %root = math.rsqrt %safe : tensor<1xf32>
    %kept = arith.truncf %added : tensor<300xf32> to tensor<300xbf16>
    %wide = arith.extf %w : tensor<300xbf16> to tensor<300xf32>
    %weighted = arith.mulf %added, %wide : tensor<300xf32>
    %size = math.absf %weighted : tensor<300xf32>
    %largest = comms.row_reduce max %size : tensor<300xf32> -> tensor<1xf32>
    %tiny = arith.constant dense<1.0e-15> : tensor<1xf32>
    %limit = arith.constant dense<448.0> : tensor<1xf32>
    %least = arith.maximumf %largest, %tiny : tensor<1xf32>
    %inverse = arith.divf %limit, %least : tensor<1xf32>
    %inverses = comms.broadcast_row %inverse : tensor<1xf32> -> tensor<300xf32>
    %small = arith.mulf %weighted, %inverses : tensor<300xf32>
    %out = arith.truncf %small : tensor<300xf32> to tensor<300xf8E4M3FN>
    %unit = arith.divf %least, %limit : tensor<1xf32>
    %factor = arith.mulf %unit, %root : tensor<1xf32>
    comms.yield %out, %kept, %factor : tensor<300xf8E4M3FN>, tensor<300xbf16>, tensor<1xf32>
  }
  comms.return
}
