// EXEC: comms.for_peers comms.yield
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'digits = [(r + k) % 4 for k in (1, 2, 3)]' \
// RUN:   'y = np.array([np.dot(digits, [100, 10, 1]), np.dot(digits, [1, 10, 100])], np.int32)'
// RUN: comms-run %s --ranks 4 --expect y=%t/y-%r.npy --quiet
// RUN: comms-run %s --ranks 1 --output y=%t/one-%r.npy --quiet
// RUN: %python -c "import numpy, sys; assert not numpy.load(sys.argv[1]).any()" %t/one-0.npy

// The order of visits, as decimal digits: r+1, r+2, r+3; reversed r-1, r-2, r-3.
// A rank without peers visits nobody.
comms.kernel @for_peers(%y: memref<2xi32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ten = arith.constant dense<10> : tensor<1xi32>
  comms.for_peers %team as %peer {
    %p = arith.index_cast %peer : index to i32
    %digit = comms.splat %p : i32 -> tensor<1xi32>
    %old = comms.tile_load %y[%c0] : memref<2xi32> -> tensor<1xi32>
    %shifted = arith.muli %old, %ten : tensor<1xi32>
    %new = arith.addi %shifted, %digit : tensor<1xi32>
    comms.tile_store %new, %y[%c0] : tensor<1xi32>, memref<2xi32>
  }
  comms.for_peers %team reversed as %peer {
    %p = arith.index_cast %peer : index to i32
    %digit = comms.splat %p : i32 -> tensor<1xi32>
    %old = comms.tile_load %y[%c1] : memref<2xi32> -> tensor<1xi32>
    %shifted = arith.muli %old, %ten : tensor<1xi32>
    %new = arith.addi %shifted, %digit : tensor<1xi32>
    comms.tile_store %new, %y[%c1] : tensor<1xi32>, memref<2xi32>
  }
  comms.return
}
