// EXEC: comms.all_gather comms.all_to_all comms.reduce_scatter comms.all_reduce
// Inputs of `produce` after the first: rows of another length, and one row that all rows share.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 64)) * 3)).astype(np.float32)' \
// RUN:   's = (np.round(random((8, 1)) * 3) % 4 + 1).astype(np.float32)' \
// RUN:   'w = (np.round(random((64,)) * 3) % 4).astype(np.float32)' \
// RUN:   'p = x * s + w' \
// RUN:   'g = np.concatenate(ps)' \
// RUN:   't = np.concatenate([o[2 * r:2 * r + 2] for o in ps])' \
// RUN:   'm = sum(ps)' \
// RUN:   'c = sum(ps)[2 * r:2 * r + 2]'
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --kernel all_gather --ranks 4 --launches 3 --input x=%t/x-%r.npy --input s=%t/s-%r.npy --input w=%t/w-%r.npy \
// RUN:   --expect y=%t/g-%r.npy --bitwise
// RUN: %python %S/sweep.py --algorithms one_shot,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --kernel all_to_all --ranks 4 --launches 3 --input x=%t/x-%r.npy --input s=%t/s-%r.npy --input w=%t/w-%r.npy \
// RUN:   --expect y=%t/t-%r.npy --bitwise
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --kernel all_reduce --ranks 4 --launches 3 --input x=%t/x-%r.npy --input s=%t/s-%r.npy --input w=%t/w-%r.npy \
// RUN:   --expect y=%t/m-%r.npy --bitwise
// RUN: %python %S/sweep.py --algorithms one_shot,ring --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --kernel reduce_scatter --ranks 4 --launches 3 --input x=%t/x-%r.npy --input s=%t/s-%r.npy --input w=%t/w-%r.npy \
// RUN:   --expect y=%t/c-%r.npy --bitwise

comms.kernel @all_gather(%x: memref<8x64xf32>, %s: memref<8x1xf32>, %w: memref<64xf32>, %y: memref<32x64xf32>) {
  %team = comms.team world
  comms.all_gather %team ins(%x, %s, %w : memref<8x64xf32>, memref<8x1xf32>, memref<64xf32>)
      outs(%y : memref<32x64xf32>)
  produce (%a: tensor<64xf32>, %b: tensor<1xf32>, %c: tensor<64xf32>) {
    %wide = comms.broadcast_row %b : tensor<1xf32> -> tensor<64xf32>
    %product = arith.mulf %a, %wide : tensor<64xf32>
    %sum = arith.addf %product, %c : tensor<64xf32>
    comms.yield %sum : tensor<64xf32>
  }
  comms.return
}

comms.kernel @all_to_all(%x: memref<8x64xf32>, %s: memref<8x1xf32>, %w: memref<64xf32>, %y: memref<8x64xf32>) {
  %team = comms.team world
  comms.all_to_all %team ins(%x, %s, %w : memref<8x64xf32>, memref<8x1xf32>, memref<64xf32>)
      outs(%y : memref<8x64xf32>)
  produce (%a: tensor<64xf32>, %b: tensor<1xf32>, %c: tensor<64xf32>) {
    %wide = comms.broadcast_row %b : tensor<1xf32> -> tensor<64xf32>
    %product = arith.mulf %a, %wide : tensor<64xf32>
    %sum = arith.addf %product, %c : tensor<64xf32>
    comms.yield %sum : tensor<64xf32>
  }
  comms.return
}

comms.kernel @all_reduce(%x: memref<8x64xf32>, %s: memref<8x1xf32>, %w: memref<64xf32>, %y: memref<8x64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x, %s, %w : memref<8x64xf32>, memref<8x1xf32>, memref<64xf32>)
      outs(%y : memref<8x64xf32>)
  produce (%a: tensor<64xf32>, %b: tensor<1xf32>, %c: tensor<64xf32>) {
    %wide = comms.broadcast_row %b : tensor<1xf32> -> tensor<64xf32>
    %product = arith.mulf %a, %wide : tensor<64xf32>
    %sum = arith.addf %product, %c : tensor<64xf32>
    comms.yield %sum : tensor<64xf32>
  }
  comms.return
}

comms.kernel @reduce_scatter(%x: memref<8x64xf32>, %s: memref<8x1xf32>, %w: memref<64xf32>, %y: memref<2x64xf32>) {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x, %s, %w : memref<8x64xf32>, memref<8x1xf32>, memref<64xf32>)
      outs(%y : memref<2x64xf32>)
  produce (%a: tensor<64xf32>, %b: tensor<1xf32>, %c: tensor<64xf32>) {
    %wide = comms.broadcast_row %b : tensor<1xf32> -> tensor<64xf32>
    %product = arith.mulf %a, %wide : tensor<64xf32>
    %sum = arith.addf %product, %c : tensor<64xf32>
    comms.yield %sum : tensor<64xf32>
  }
  comms.return
}
