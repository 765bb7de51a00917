// EXEC: comms.all_reduce comms.row_reduce
// RUN: rm -rf %t && %python %S/make.py mean-subtract %t --ranks 5
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,lamport --blocks 1,2 \
// RUN:   %s --ranks 5 --launches 3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// The average over the ranks, less the mean of each row.
comms.kernel @mean_subtract(%x: !comms.window<3x50xf32>, %y: memref<3x50xf32>) {
  %team = comms.team world
  comms.all_reduce avg %team ins(%x : !comms.window<3x50xf32>) outs(%y : memref<3x50xf32>)
  consume (%mean: tensor<50xf32>) {
    %count = arith.constant dense<50.0> : tensor<1xf32>
    %total = comms.row_reduce sum %mean : tensor<50xf32> -> tensor<1xf32>
    %middle = arith.divf %total, %count : tensor<1xf32>
    %middles = comms.broadcast_row %middle : tensor<1xf32> -> tensor<50xf32>
    %out = arith.subf %mean, %middles : tensor<50xf32>
    comms.yield %out : tensor<50xf32>
  }
  comms.return
}
