// EXEC: comms.all_reduce comms.row_reduce
// RUN: rm -rf %t && %python %S/make.py softmax-row %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// All-reduce, then softmax of each row: the largest, then the sum.
comms.kernel @softmax_row(%x: !comms.window<4x65xf32>, %y: memref<4x65xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x65xf32>) outs(%y : memref<4x65xf32>)
  consume (%sum: tensor<65xf32>) {
    %largest = comms.row_reduce max %sum : tensor<65xf32> -> tensor<1xf32>
    %tops = comms.broadcast_row %largest : tensor<1xf32> -> tensor<65xf32>
    %below = arith.subf %sum, %tops : tensor<65xf32>
    %power = math.exp %below : tensor<65xf32>
    %total = comms.row_reduce sum %power : tensor<65xf32> -> tensor<1xf32>
    %totals = comms.broadcast_row %total : tensor<1xf32> -> tensor<65xf32>
    %out = arith.divf %power, %totals : tensor<65xf32>
    comms.yield %out : tensor<65xf32>
  }
  comms.return
}
