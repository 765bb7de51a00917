// EXEC: comms.all_reduce comms.row_reduce
// RUN: rm -rf %t && %python %S/make.py fp8-quantize-row %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,ll128,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect q=%t/q-%r.npy --expect scale=%t/scale-%r.npy

// All-reduce in f32 whatever comes in, then each row as fp8 with a scale of its
// own.
comms.kernel @fp8_quantize_row(%x: !comms.window<7x64xbf16>, %q: memref<7x64xf8E4M3FN>,
                               %scale: memref<7x1xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<7x64xbf16>)
      outs(%q, %scale : memref<7x64xf8E4M3FN>, memref<7x1xf32>)
  produce (%in: tensor<64xbf16>) {
    %wide = arith.extf %in : tensor<64xbf16> to tensor<64xf32>
    comms.yield %wide : tensor<64xf32>
  }
  consume (%sum: tensor<64xf32>) {
    %size = math.absf %sum : tensor<64xf32>
    %largest = comms.row_reduce max %size : tensor<64xf32> -> tensor<1xf32>
    %tiny = arith.constant dense<1.0e-12> : tensor<1xf32>
    %limit = arith.constant dense<448.0> : tensor<1xf32>
    %safe = arith.maximumf %largest, %tiny : tensor<1xf32>
    %factor = arith.divf %safe, %limit : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<64xf32>
    %scaled = arith.divf %sum, %factors : tensor<64xf32>
    %out = arith.truncf %scaled : tensor<64xf32> to tensor<64xf8E4M3FN>
    comms.yield %out, %factor : tensor<64xf8E4M3FN>, tensor<1xf32>
  }
  comms.return
}
