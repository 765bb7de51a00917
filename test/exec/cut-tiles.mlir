// EXEC: comms.all_reduce
// Halves of a row, one behind the other: a rotary embedding.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'c = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   's = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'm = sum(xs)' \
// RUN:   'y = m * c + np.concatenate([-m[:, 24:], m[:, :24]], axis=1) * s'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll,lamport --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --input c=%t/c-%r.npy --input s=%t/s-%r.npy \
// RUN:   --expect y=%t/y-%r.npy --bitwise

comms.kernel @rotary(%x: memref<8x48xf32>, %c: memref<8x48xf32>, %s: memref<8x48xf32>, %y: memref<8x48xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<8x48xf32>) outs(%y : memref<8x48xf32>)
      args(%c, %s : memref<8x48xf32>, memref<8x48xf32>)
  consume (%m: tensor<48xf32>, %cos: tensor<48xf32>, %sin: tensor<48xf32>) {
    %a = tensor.extract_slice %m[0] [24] [1] : tensor<48xf32> to tensor<24xf32>
    %b = tensor.extract_slice %m[24] [24] [1] : tensor<48xf32> to tensor<24xf32>
    %n = arith.negf %b : tensor<24xf32>
    %r = tensor.concat dim(0) %n, %a : (tensor<24xf32>, tensor<24xf32>) -> tensor<48xf32>
    %p = arith.mulf %m, %cos : tensor<48xf32>
    %t = arith.mulf %r, %sin : tensor<48xf32>
    %u = arith.addf %p, %t : tensor<48xf32>
    comms.yield %u : tensor<48xf32>
  }
  comms.return
}
