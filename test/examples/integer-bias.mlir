// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/make.py integer-bias %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,ll128 --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy --input bias=%t/bias-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// i8 is summed in i32: exact.
comms.kernel @integer_bias(%x: !comms.window<3x40xi8>, %bias: memref<3x40xi32>, %y: memref<3x40xi32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<3x40xi8>) outs(%y : memref<3x40xi32>)
      args(%bias : memref<3x40xi32>)
  consume (%sum: tensor<40xi32>, %b: tensor<40xi32>) {
    %out = arith.addi %sum, %b : tensor<40xi32>
    comms.yield %out : tensor<40xi32>
  }
  comms.return
}
