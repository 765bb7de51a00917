// One bf16 for all elements of a tile whose tail is one element, which loops carry: code generation takes it for a vector
// of one, and carries that as f32.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 'x = np.array([1.5 + r, 2], bf16)' 'y = np.full(257, x[0], bf16)'
// RUN: comms-run %s --ranks 2 --quiet --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @carried(%x: memref<2xbf16>, %y: memref<257xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %value = memref.load %x[%c0] : memref<2xbf16>
  %tile = comms.splat %value : bf16 -> tensor<257xbf16>
  %last = scf.while (%i = %c0) : (index) -> index {
    %more = arith.cmpi slt, %i, %c3 : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %both:2 = scf.for %j = %c0 to %c2 step %c1 iter_args(%a = %tile, %b = %tile) -> (tensor<257xbf16>, tensor<257xbf16>) {
      comms.tile_store %a, %y[%c0] : tensor<257xbf16>, memref<257xbf16>
      scf.yield %b, %b : tensor<257xbf16>, tensor<257xbf16>
    }
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  comms.return
}
