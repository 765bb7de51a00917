// EXEC: comms.contract
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'a = random((13, 300)).astype(f8)' \
// RUN:   'b = random((150, 300)).astype(f8)' \
// RUN:   'p = random((13, 3)).astype(np.float32)' \
// RUN:   'q = random((2, 3)).astype(np.float32)' \
// RUN:   'u = random((1, 13)).astype(np.float32)' \
// RUN:   'v = random((1, 1)).astype(np.float32)' \
// RUN:   't = np.ascontiguousarray(a.T)' \
// RUN:   'd = random((13, 150)).astype(np.float32)' \
// RUN:   'c = random((13, 150)).astype(np.float32)' \
// RUN:   'left = a.astype(float) * np.repeat(p, 128, 1)[:, :300]' \
// RUN:   'right = b.astype(float) * np.repeat(np.repeat(q, 128, 0), 128, 1)[:150, :300]' \
// RUN:   'y = c + left @ right.T' \
// RUN:   'z = (a.astype(float) * u.T) @ b.T.astype(float) * v + d'
// RUN: comms-run %s --ranks 2 --input a=%t/a-%r.npy --input b=%t/b-%r.npy --input p=%t/p-%r.npy --input q=%t/q-%r.npy \
// RUN:   --input u=%t/u-%r.npy --input v=%t/v-%r.npy --input t=%t/t-%r.npy --input d=%t/d-%r.npy --input c=%t/c-%r.npy \
// RUN:   --expect c=%t/y-%r.npy --expect z=%t/z-%r.npy --quiet

// Scales of 1 by 128 and of 128 by 128 elements, of which the last blocks are
// not whole, added to what is there; and one for each row and for a matrix, with
// an addend. Tiles of 24 columns begin and end within blocks.
comms.kernel @scales(%a: memref<13x300xf8E4M3FN>, %b: memref<150x300xf8E4M3FN>, %p: memref<13x3xf32>, %q: memref<2x3xf32>,
                     %u: memref<1x13xf32>, %v: memref<1x1xf32>, %t: memref<300x13xf8E4M3FN>, %d: memref<13x150xf32>,
                     %c: memref<13x150xf32>, %z: memref<13x150xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c13 = arith.constant 13 : index
  %c24 = arith.constant 24 : index
  %c150 = arith.constant 150 : index
  %c300 = arith.constant 300 : index
  scf.for %i = %c0 to %c13 step %c8 {
    %down = arith.subi %c13, %i : index
    %rows = arith.minsi %down, %c8 : index
    scf.for %j = %c0 to %c150 step %c24 {
      %right = arith.subi %c150, %j : index
      %columns = arith.minsi %right, %c24 : index
      comms.contract %a[%i, %c0], %b[%j, %c0] to %c[%i, %j] tile [8, 24] depth %c300 rows %rows columns %columns
        scaled by %p, %q {accumulate, transpose_rhs}
        : memref<13x300xf8E4M3FN>, memref<150x300xf8E4M3FN>, memref<13x150xf32> scaled by memref<13x3xf32>, memref<2x3xf32>
      comms.contract %t[%c0, %i], %b[%j, %c0] to %z[%i, %j] tile [8, 24] depth %c300 rows %rows columns %columns
        scaled by %u, %v plus %d[%i, %j] {transpose_lhs, transpose_rhs}
        : memref<300x13xf8E4M3FN>, memref<150x300xf8E4M3FN>, memref<13x150xf32> scaled by memref<1x13xf32>, memref<1x1xf32>
        plus memref<13x150xf32>
    }
  }
  comms.return
}
