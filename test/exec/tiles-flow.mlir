// EXEC: comms.tile_load comms.tile_store comms.splat comms.iota
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = random((8, 37)).astype(np.float32)' \
// RUN:   'z = np.array(x, copy=True)' \
// RUN:   'y = (((2 + z[0]) + z[2]) + z[4]) + z[6]' \
// RUN:   'w = (((np.arange(37) + z[1]).astype(np.float32) + z[3]) + z[5]) + z[7]'
// RUN: %python %S/sweep.py --blocks 1,2 %s --ranks 2 --launches 2 \
// RUN:   --input x=%t/x-%r.npy --input last=8 --expect y=%t/y-%r.npy --expect w=%t/w-%r.npy

// Two accumulators that change places at each step, over a number of steps that
// is known at run time only.
comms.kernel @flow(%x: memref<8x37xf32>, %y: memref<37xf32>, %w: memref<37xf32>, %last: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c37 = arith.constant 37 : index
  %two = arith.constant 2.0 : f32
  %first = comms.splat %two : f32 -> tensor<37xf32>
  %second = comms.iota : tensor<37xf32>
  %r:2 = scf.for %i = %c0 to %last step %c1 iter_args(%a = %first, %b = %second) -> (tensor<37xf32>, tensor<37xf32>) {
    %at = arith.muli %i, %c37 : index
    %row = comms.tile_load %x[%at] : memref<8x37xf32> -> tensor<37xf32>
    %sum = arith.addf %a, %row : tensor<37xf32>
    scf.yield %b, %sum : tensor<37xf32>, tensor<37xf32>
  }
  comms.tile_store %r#0, %y[%c0] : tensor<37xf32>, memref<37xf32>
  comms.tile_store %r#1, %w[%c0] : tensor<37xf32>, memref<37xf32>
  comms.return
}
