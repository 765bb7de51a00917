// EXEC: comms.iota comms.splat
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = random((4, 33)).astype(np.float32)' \
// RUN:   'y = sum(x.astype(float) for x in xs) * np.where(np.arange(33) % 2, -0.5, 0.5)'
// RUN: comms-run %s --ranks 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --quiet

// Half of the sum, with the sign turned in every second column.
comms.kernel @iota(%x: !comms.window<4x33xf32>, %y: memref<4x33xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x33xf32>) outs(%y : memref<4x33xf32>)
  consume (%sum: tensor<33xf32>) {
    %column = comms.iota : tensor<33xi32>
    %one = arith.constant dense<1> : tensor<33xi32>
    %odd = arith.andi %column, %one : tensor<33xi32>
    %is = arith.cmpi eq, %odd, %one : tensor<33xi32>
    %half = arith.constant 0.5 : f32
    %halves = comms.splat %half : f32 -> tensor<33xf32>
    %minus = arith.negf %halves : tensor<33xf32>
    %factor = arith.select %is, %minus, %halves : tensor<33xi1>, tensor<33xf32>
    %out = arith.mulf %sum, %factor : tensor<33xf32>
    comms.yield %out : tensor<33xf32>
  }
  comms.return
}
