// A channel whose memory is smaller than one vector of packets.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = random((2, 3)).astype(np.float32)' 'h = sum(x.astype(float) for x in xs)' 'y = h - h.max(axis=1, keepdims=True)'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring,permutation --protocols pull,push,ll,lamport \
// RUN:   %s --ranks 2 --blocks 2 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --rtol 1e-5 --atol 1e-6
comms.kernel @small(%x: memref<2x3xf32>, %y: memref<2x3xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<2x3xf32>) outs(%y : memref<2x3xf32>)
  consume (%a: tensor<3xf32>) {
    %most = comms.row_reduce max %a : tensor<3xf32> -> tensor<1xf32>
    %wide = comms.broadcast_row %most : tensor<1xf32> -> tensor<3xf32>
    %out = arith.subf %a, %wide : tensor<3xf32>
    comms.yield %out : tensor<3xf32>
  }
  comms.return
}
