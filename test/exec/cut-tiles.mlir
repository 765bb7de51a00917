// EXEC: comms.all_gather comms.all_reduce comms.reduce_scatter
// Parts of tiles, and tiles one behind the other: a rotary embedding, the split of a row into results of other lengths, a part
// of one element, a row that is joined of two arrays, and parts of what is sent.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'c = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   's = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'm = sum(xs)' \
// RUN:   'y = m * c + np.concatenate([-m[:, 24:], m[:, :24]], axis=1) * s' \
// RUN:   'q = m[:, :20] / 2' 'k = m[:, 20:47]' 'v = m[:, 47:]' \
// RUN:   'j = np.concatenate([np.concatenate([one[:, 40:], one[:, :1]], axis=1) for one in xs])' \
// RUN:   'w = np.concatenate([j, np.tile(s[0, :7], (32, 1)), j[:, 2:3] * np.ones((32, 1), np.float32)], axis=1)' \
// RUN:   'z = s[0, :7]'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll,lamport --blocks 1,3 \
// RUN:   %s --kernel rotary --ranks 4 --launches 3 --input x=%t/x-%r.npy --input c=%t/c-%r.npy --input s=%t/s-%r.npy \
// RUN:   --expect y=%t/y-%r.npy --bitwise
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll,lamport --blocks 1,3 \
// RUN:   %s --kernel split --ranks 4 --launches 3 --input x=%t/x-%r.npy \
// RUN:   --expect q=%t/q-%r.npy --expect k=%t/k-%r.npy --expect v=%t/v-%r.npy --bitwise
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --kernel joined --ranks 4 --launches 3 --input x=%t/x-%r.npy --input z=%t/z-%r.npy \
// RUN:   --expect w=%t/w-%r.npy --bitwise

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

comms.kernel @split(%x: memref<8x48xf32>, %q: memref<8x20xf32>, %k: memref<8x27xf32>, %v: memref<8x1xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<8x48xf32>)
      outs(%q, %k, %v : memref<8x20xf32>, memref<8x27xf32>, memref<8x1xf32>)
  consume (%m: tensor<48xf32>) {
    %half = arith.constant dense<0.5> : tensor<20xf32>
    %a = tensor.extract_slice %m[0] [20] [1] : tensor<48xf32> to tensor<20xf32>
    %b = tensor.extract_slice %m[20] [27] [1] : tensor<48xf32> to tensor<27xf32>
    %c = tensor.extract_slice %m[47] [1] [1] : tensor<48xf32> to tensor<1xf32>
    %h = arith.mulf %a, %half : tensor<20xf32>
    comms.yield %h, %b, %c : tensor<20xf32>, tensor<27xf32>, tensor<1xf32>
  }
  comms.return
}

comms.kernel @joined(%x: memref<8x48xf32>, %z: memref<7xf32>, %w: memref<32x17xf32>) {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<8x48xf32>) outs(%w : memref<32x17xf32>) args(%z : memref<7xf32>)
  produce (%a: tensor<48xf32>) {
    %end = tensor.extract_slice %a[40] [8] [1] : tensor<48xf32> to tensor<8xf32>
    %first = tensor.extract_slice %a[0] [1] [1] : tensor<48xf32> to tensor<1xf32>
    %sent = tensor.concat dim(0) %end, %first : (tensor<8xf32>, tensor<1xf32>) -> tensor<9xf32>
    comms.yield %sent : tensor<9xf32>
  }
  consume (%a: tensor<9xf32>, %b: tensor<7xf32>) {
    %one = tensor.extract_slice %a[2] [1] [1] : tensor<9xf32> to tensor<1xf32>
    %row = tensor.concat dim(0) %a, %b, %one : (tensor<9xf32>, tensor<7xf32>, tensor<1xf32>) -> tensor<17xf32>
    comms.yield %row : tensor<17xf32>
  }
  comms.return
}
