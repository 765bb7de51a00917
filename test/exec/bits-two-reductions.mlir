// RUN: rm -rf %t && %python %S/bits.py two-reductions %t
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x=%t/x-%r.npy --expect y=%t/y-%r.npy

// Two reductions of one row in one region; rows with NaN, infinities and -0.0.
comms.kernel @two_reductions(%x: !comms.window<4x300xf32>, %y: !comms.window<4x300xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x300xf32>) outs(%y : !comms.window<4x300xf32>)
  consume (%total: tensor<300xf32>) {
    %most = comms.row_reduce max %total : tensor<300xf32> -> tensor<1xf32>
    %sum = comms.row_reduce sum %total : tensor<300xf32> -> tensor<1xf32>
    %mosts = comms.broadcast_row %most : tensor<1xf32> -> tensor<300xf32>
    %sums = comms.broadcast_row %sum : tensor<1xf32> -> tensor<300xf32>
    %less = arith.subf %total, %mosts : tensor<300xf32>
    %out = arith.mulf %less, %sums : tensor<300xf32>
    comms.yield %out : tensor<300xf32>
  }
  comms.return
}
