// EXEC: comms.contract
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'a = random((13, 21)).astype(np.float32)' \
// RUN:   'b = random((35, 21)).astype(np.float32)' \
// RUN:   'c = random((15, 40)).astype(np.float32)' \
// RUN:   'y = np.concatenate([np.concatenate([c[:13, :35] + a.astype(float) @ b.T.astype(float), c[:13, 35:]], 1), c[13:]])'
// RUN: comms-run %s --ranks 2 --input a=%t/a-%r.npy --input b=%t/b-%r.npy --input c=%t/c-%r.npy --expect c=%t/y-%r.npy --quiet

// Sums of 21 terms that are added to what is there, by tiles of which the last
// are not whole.
comms.kernel @contract(%a: memref<13x21xf32>, %b: memref<35x21xf32>, %c: memref<15x40xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c13 = arith.constant 13 : index
  %c21 = arith.constant 21 : index
  %c24 = arith.constant 24 : index
  %c35 = arith.constant 35 : index
  scf.for %i = %c0 to %c13 step %c8 {
    %down = arith.subi %c13, %i : index
    %rows = arith.minsi %down, %c8 : index
    scf.for %j = %c0 to %c35 step %c24 {
      %right = arith.subi %c35, %j : index
      %columns = arith.minsi %right, %c24 : index
      comms.contract %a[%i, %c0], %b[%j, %c0] to %c[%i, %j] tile [8, 24] depth %c21 rows %rows columns %columns
        {accumulate, transpose_rhs} : memref<13x21xf32>, memref<35x21xf32>, memref<15x40xf32>
    }
  }
  comms.return
}
