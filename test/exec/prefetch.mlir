// EXEC: comms.all_reduce
// An array that `consume` takes and does not use is not read: it may be longer than a tile, and on GPUs it is brought into L2.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 48)) * 3)).astype(np.float32)' 'w = np.zeros(100003, np.float32)' 'y = sum(xs) * 2'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --input w=%t/w-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @next(%x: memref<8x48xf32>, %w: memref<100003xf32>, %y: memref<8x48xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<8x48xf32>) outs(%y : memref<8x48xf32>) args(%w : memref<100003xf32>)
  consume (%m: tensor<48xf32>, %next: tensor<100003xf32>) {
    %two = arith.constant dense<2.0> : tensor<48xf32>
    %u = arith.mulf %m, %two : tensor<48xf32>
    comms.yield %u : tensor<48xf32>
  }
  comms.return
}
