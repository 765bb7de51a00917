// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/make.py square-sum %t --ranks 4
// RUN: %python %S/../exec/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,ll,ll128,lamport --blocks 1,2 \
// RUN:   %s --ranks 4 --launches 3 \
// RUN:   --input x=%t/x-%r.npy \
// RUN:   --expect y=%t/y-%r.npy

// Squares are made before the exchange, in f32; the root is taken after it.
comms.kernel @square_sum(%x: !comms.window<4x48xbf16>, %y: memref<4x48xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x48xbf16>) outs(%y : memref<4x48xf32>)
  produce (%in: tensor<48xbf16>) {
    %wide = arith.extf %in : tensor<48xbf16> to tensor<48xf32>
    %square = arith.mulf %wide, %wide : tensor<48xf32>
    comms.yield %square : tensor<48xf32>
  }
  consume (%sum: tensor<48xf32>) {
    %root = math.sqrt %sum : tensor<48xf32>
    comms.yield %root : tensor<48xf32>
  }
  comms.return
}
