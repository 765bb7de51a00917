// What loops carry from memory to memory keeps its bits, also single numbers and tiles of one: NaN of every kind.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = np.resize(np.roll(np.array([0x7FC00000, 0xFFFAFFFA, 0x7F800001, 0xFF800001, 0x80000000, 1, 0xFFFFFFFF], np.uint32), r), 20).view(np.float32)' \
// RUN:   'y = np.roll(xs[r], 1)' 'z = np.roll(xs[r], 1)'
// RUN: comms-run %s --ranks 2 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --expect z=%t/z-%r.npy --bitwise
comms.kernel @carried(%x: memref<20xf32>, %y: memref<20xf32>, %z: memref<20xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c19 = arith.constant 19 : index
  %c20 = arith.constant 20 : index
  %last = memref.load %x[%c19] : memref<20xf32>
  %end = comms.tile_load %x[%c19] : memref<20xf32> -> tensor<1xf32>
  %a, %b = scf.for %i = %c0 to %c20 step %c1 iter_args(%held = %last, %tile = %end) -> (f32, tensor<1xf32>) {
    memref.store %held, %y[%i] : memref<20xf32>
    comms.tile_store %tile, %z[%i] : tensor<1xf32>, memref<20xf32>
    %one = memref.load %x[%i] : memref<20xf32>
    %some = comms.tile_load %x[%i] : memref<20xf32> -> tensor<1xf32>
    scf.yield %one, %some : f32, tensor<1xf32>
  }
  comms.return
}
