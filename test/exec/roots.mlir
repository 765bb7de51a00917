// Roots and their inverses are rounded to nearest even, of every significand with an even and an odd exponent, of 64
// significands with every exponent and sign, subnormal ones too, and of zeros, infinities and NaN.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'i = np.arange(1 << 15, dtype=np.uint32)' \
// RUN:   'x = np.concatenate([np.arange(1 << 24, dtype=np.uint32) + 0x3F800000, i << 17 | i % 2 * (i * 9 & 0x1FFFF)]).view(np.float32)' \
// RUN:   'root = np.where(x >= 0, np.sqrt(np.abs(x)) * np.copysign(np.float32(1), x), np.float32(np.nan))' \
// RUN:   'inverse = np.float32(1) / root'
// RUN: comms-run %s --ranks 1 --quiet --input x=%t/x-%r.npy --expect root=%t/root-%r.npy --expect inverse=%t/inverse-%r.npy --bitwise
comms.kernel @roots(%x: memref<16809984xf32>, %root: memref<16809984xf32>, %inverse: memref<16809984xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 4096 : index
  %end = arith.constant 16809984 : index
  scf.for %at = %c0 to %end step %step {
    %tile = comms.tile_load %x[%at] : memref<16809984xf32> -> tensor<4096xf32>
    %roots = math.sqrt %tile : tensor<4096xf32>
    comms.tile_store %roots, %root[%at] : tensor<4096xf32>, memref<16809984xf32>
    %inverses = math.rsqrt %tile : tensor<4096xf32>
    comms.tile_store %inverses, %inverse[%at] : tensor<4096xf32>, memref<16809984xf32>
  }
  comms.return
}
