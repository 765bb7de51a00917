// What a loop carries keeps its bits in the round in which it is only moved, and is canonical where it was computed: NaN
// of every kind. A loop that is unrolled says the same.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = np.resize(np.roll(np.array([0x7FC00000, 0xFFFAFFFA, 0x7F800001, 0xFF800001, 0x80000000, 1, 0xFFFFFFFF], np.uint32), r), 60).view(np.float32)' \
// RUN:   'sum0 = xs[r][:20] + xs[r][20:40]' 'sum1 = sum0s[r] + xs[r][40:]' \
// RUN:   'y = np.concatenate([xs[r][:20], *(np.where(np.isnan(s[r]), np.float32(np.nan), s[r]) for s in (sum0s, sum1s))]).view(np.float32)' \
// RUN:   'z = np.where(np.isnan(ys[r]), np.uint32(0x7FC00000), ys[r].view(np.uint32))[40:].view(np.float32)'
// RUN: comms-run %s --ranks 2 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --expect z=%t/z-%r.npy --bitwise
comms.kernel @carried_sums(%x: memref<60xf32>, %y: memref<60xf32>, %z: memref<20xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c20 = arith.constant 20 : index
  %c40 = arith.constant 40 : index
  %first = comms.tile_load %x[%c0] : memref<60xf32> -> tensor<20xf32>
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%tile = %first) -> (tensor<20xf32>) {
    %at = arith.muli %i, %c20 : index
    comms.tile_store %tile, %y[%at] : tensor<20xf32>, memref<60xf32>
    %further = arith.addi %at, %c20 : index
    %next = arith.minui %further, %c40 : index
    %other = comms.tile_load %x[%next] : memref<60xf32> -> tensor<20xf32>
    %more = arith.addf %tile, %other : tensor<20xf32>
    scf.yield %more : tensor<20xf32>
  }
  %last = comms.tile_load %y[%c40] : memref<60xf32> -> tensor<20xf32>
  %bits = arith.bitcast %last : tensor<20xf32> to tensor<20xi32>
  %same = arith.bitcast %bits : tensor<20xi32> to tensor<20xf32>
  comms.tile_store %same, %z[%c0] : tensor<20xf32>, memref<20xf32>
  comms.return
}
