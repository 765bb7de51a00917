// EXEC: comms.all_gather comms.row_reduce
// RUN: rm -rf %t && %python %S/make.py quantized-all-gather %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,ring --protocols pull,ll --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 --rtol 0.13 --atol 1e-3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// Rows travel as fp8 with a scale each, and are widened where they arrive.
comms.kernel @quantized_all_gather(%x: !comms.window<2x64xf32>, %y: memref<8x64xf32>) {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<2x64xf32>) outs(%y : memref<8x64xf32>)
  produce (%in: tensor<64xf32>) {
    %size = math.absf %in : tensor<64xf32>
    %largest = comms.row_reduce max %size : tensor<64xf32> -> tensor<1xf32>
    %tiny = arith.constant dense<1.0e-12> : tensor<1xf32>
    %limit = arith.constant dense<448.0> : tensor<1xf32>
    %safe = arith.maximumf %largest, %tiny : tensor<1xf32>
    %scale = arith.divf %safe, %limit : tensor<1xf32>
    %scales = comms.broadcast_row %scale : tensor<1xf32> -> tensor<64xf32>
    %scaled = arith.divf %in, %scales : tensor<64xf32>
    %q = arith.truncf %scaled : tensor<64xf32> to tensor<64xf8E4M3FN>
    comms.yield %q, %scale : tensor<64xf8E4M3FN>, tensor<1xf32>
  }
  consume (%q: tensor<64xf8E4M3FN>, %scale: tensor<1xf32>) {
    %wide = arith.extf %q : tensor<64xf8E4M3FN> to tensor<64xf32>
    %scales = comms.broadcast_row %scale : tensor<1xf32> -> tensor<64xf32>
    %out = arith.mulf %wide, %scales : tensor<64xf32>
    comms.yield %out : tensor<64xf32>
  }
  comms.return
}
