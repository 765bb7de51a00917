// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'x = np.array([0, -0.0, 1e-7, -6e-8, 6.1e-5, 1, np.inf, -np.inf, np.nan], np.float16)' \
// RUN:   'i = np.isinf(x).astype(np.int8)' 'n = np.array([0, 0, 0, 0, 0, 1, 0, 0, 0], np.int8)'
// RUN: comms-run %s --ranks 1 --quiet --input x=%t/x-%r.npy --expect i=%t/i-%r.npy --expect n=%t/n-%r.npy --bitwise

// What is subnormal in f16 is a normal number of f32, in which f16 is computed.
comms.kernel @classes(%x: memref<9xf16>, %i: memref<9xi8>, %n: memref<9xi8>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<9xf16> -> tensor<9xf16>
  %infinite = math.isinf %a : tensor<9xf16>
  %j = arith.extui %infinite : tensor<9xi1> to tensor<9xi8>
  comms.tile_store %j, %i[%c0] : tensor<9xi8>, memref<9xi8>
  %normal = math.isnormal %a : tensor<9xf16>
  %m = arith.extui %normal : tensor<9xi1> to tensor<9xi8>
  comms.tile_store %m, %n[%c0] : tensor<9xi8>, memref<9xi8>
  comms.return
}
