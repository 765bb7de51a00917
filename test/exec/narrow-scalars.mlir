// Single bf16 are chosen, carried by a loop and stored: the running maximum.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = np.array([-2, 1.5, -3, r], bf16)' 'y = np.array([max(1.5, r), 1.5, 1.5, max(1.5, r)], bf16)'
// RUN: comms-run %s --ranks 2 --quiet --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @chosen(%x: memref<4xbf16>, %y: memref<4xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %first = memref.load %x[%c0] : memref<4xbf16>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%most = %first) -> (bf16) {
    %value = memref.load %x[%i] : memref<4xbf16>
    %more = arith.cmpf ogt, %value, %most : bf16
    %next = arith.select %more, %value, %most : bf16
    memref.store %next, %y[%i] : memref<4xbf16>
    scf.yield %next : bf16
  }
  memref.store %last, %y[%c0] : memref<4xbf16>
  comms.return
}
