// A bf16 that loops carry, of which one takes it from the other, compiles on processors that have no bf16.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 'x = np.array([1.5 + r, 2], bf16)' 'y = x[:1]'
// RUN: comms-run %s --ranks 2 --quiet --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @carried(%x: memref<2xbf16>, %y: memref<1xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  %epoch = comms.epoch
  %none = arith.shrui %epoch, %c40 : index
  %inner = arith.addi %c1, %none : index
  %outer = arith.addi %c2, %none : index
  %first = comms.tile_load %x[%c0] : memref<2xbf16> -> tensor<1xbf16>
  %second = comms.tile_load %x[%c1] : memref<2xbf16> -> tensor<1xbf16>
  %last = scf.for %i = %c0 to %outer step %c1 iter_args(%a = %second) -> (tensor<1xbf16>) {
    comms.tile_store %a, %y[%c0] : tensor<1xbf16>, memref<1xbf16>
    %count = arith.muli %i, %inner : index
    %got = scf.for %j = %c0 to %count step %c1 iter_args(%b = %a) -> (tensor<1xbf16>) {
      scf.yield %first : tensor<1xbf16>
    }
    scf.yield %got : tensor<1xbf16>
  }
  comms.tile_store %last, %y[%c0] : tensor<1xbf16>, memref<1xbf16>
  comms.return
}
