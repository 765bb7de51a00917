// RUN: rm -rf %t && %python %S/bits.py conversions %t
// RUN: %python %S/sweep.py --blocks 1 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x=%t/x-%r.npy --expect b=%t/b-%r.npy \
// RUN:   --expect h=%t/h-%r.npy --expect q=%t/q-%r.npy \
// RUN:   --expect b_wide=%t/b_wide-%r.npy --expect h_wide=%t/h_wide-%r.npy \
// RUN:   --expect q_wide=%t/q_wide-%r.npy --expect r=%t/r-%r.npy \
// RUN:   --expect r_wide=%t/r_wide-%r.npy --expect i=%t/i-%r.npy

// f32 of any bits to each narrow float and back, and to i8: NaN, overflow, subnormals, ties.
comms.kernel @conversions(%x: memref<8027xf32>, %i: memref<8027xi8>,
    %b: memref<8027xbf16>, %b_wide: memref<8027xf32>,
    %h: memref<8027xf16>, %h_wide: memref<8027xf32>,
    %q: memref<8027xf8E4M3FN>, %q_wide: memref<8027xf32>,
    %r: memref<8027xf8E5M2>, %r_wide: memref<8027xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<8027xf32> -> tensor<8027xf32>
  %n = arith.fptosi %t : tensor<8027xf32> to tensor<8027xi8>
  comms.tile_store %n, %i[%c0] : tensor<8027xi8>, memref<8027xi8>
  %nb = arith.truncf %t : tensor<8027xf32> to tensor<8027xbf16>
  comms.tile_store %nb, %b[%c0] : tensor<8027xbf16>, memref<8027xbf16>
  %wb = arith.extf %nb : tensor<8027xbf16> to tensor<8027xf32>
  comms.tile_store %wb, %b_wide[%c0] : tensor<8027xf32>, memref<8027xf32>
  %nh = arith.truncf %t : tensor<8027xf32> to tensor<8027xf16>
  comms.tile_store %nh, %h[%c0] : tensor<8027xf16>, memref<8027xf16>
  %wh = arith.extf %nh : tensor<8027xf16> to tensor<8027xf32>
  comms.tile_store %wh, %h_wide[%c0] : tensor<8027xf32>, memref<8027xf32>
  %nq = arith.truncf %t : tensor<8027xf32> to tensor<8027xf8E4M3FN>
  comms.tile_store %nq, %q[%c0] : tensor<8027xf8E4M3FN>, memref<8027xf8E4M3FN>
  %wq = arith.extf %nq : tensor<8027xf8E4M3FN> to tensor<8027xf32>
  comms.tile_store %wq, %q_wide[%c0] : tensor<8027xf32>, memref<8027xf32>
  %nr = arith.truncf %t : tensor<8027xf32> to tensor<8027xf8E5M2>
  comms.tile_store %nr, %r[%c0] : tensor<8027xf8E5M2>, memref<8027xf8E5M2>
  %wr = arith.extf %nr : tensor<8027xf8E5M2> to tensor<8027xf32>
  comms.tile_store %wr, %r_wide[%c0] : tensor<8027xf32>, memref<8027xf32>
  comms.return
}
