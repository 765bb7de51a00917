// EXEC: comms.all_reduce
// A row that is split into results of other lengths, one of them a single element.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'm = sum(xs)' 'q = m[:, :20] / 2' 'k = m[:, 20:47]' 'v = m[:, 47:]'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring --protocols pull,push,ll,lamport --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy \
// RUN:   --expect q=%t/q-%r.npy --expect k=%t/k-%r.npy --expect v=%t/v-%r.npy --bitwise

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
