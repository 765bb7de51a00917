// EXEC: comms.all_gather
// Parts of what is sent, and a row that is joined of two arrays.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.round(random((8, 48)) * 3)).astype(np.float32)' \
// RUN:   'z = (np.round(random(7) * 3)).astype(np.float32)' \
// RUN:   'j = np.concatenate([np.concatenate([one[:, 40:], one[:, :1]], axis=1) for one in xs])' \
// RUN:   'w = np.concatenate([j, np.tile(z, (32, 1)), j[:, 2:3] * np.ones((32, 1), np.float32)], axis=1)'
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --input z=%t/z-%r.npy \
// RUN:   --expect w=%t/w-%r.npy --bitwise

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
