// EXEC: comms.bulk_copy comms.bulk_wait
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'x = np.arange(12, dtype=np.int32) + r' \
// RUN:   'y = np.concatenate([x[8:], x[:4], np.zeros(4, np.int32)])'
// RUN: comms-run %s --ranks 2 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --quiet

// Two asynchronous copies, waited for together.
comms.kernel @bulk(%x: memref<12xi32>, %y: memref<12xi32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %a = comms.bulk_copy %x[%c8] to %y[%c0] count %c4 : memref<12xi32>, memref<12xi32>
  %b = comms.bulk_copy %x[%c0] to %y[%c4] count %c4 : memref<12xi32>, memref<12xi32>
  %t = comms.bulk_wait %a, %b
  comms.return
}
