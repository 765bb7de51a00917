// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/make.py silu %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,ll128,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// All-reduce, then x / (1 + exp(-x)): nothing looks at a row, and 1001 elements
// make an odd last tile.
comms.kernel @silu(%x: !comms.window<1001xf32>, %y: !comms.window<1001xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1001xf32>) outs(%y : !comms.window<1001xf32>)
  consume (%sum: tensor<1001xf32>) {
    %one = arith.constant dense<1.0> : tensor<1001xf32>
    %minus = arith.negf %sum : tensor<1001xf32>
    %power = math.exp %minus : tensor<1001xf32>
    %below = arith.addf %one, %power : tensor<1001xf32>
    %out = arith.divf %sum, %below : tensor<1001xf32>
    comms.yield %out : tensor<1001xf32>
  }
  comms.return
}
