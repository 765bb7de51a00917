// Scales of 1 by 128 and of 128 by 128 elements, in tiles that begin and end
// within blocks; then one scale for each row, and one for each column and 128
// terms.
comms.kernel @scaled(%a: memref<21x160xf8E4M3FN>, %b: memref<136x160xf8E5M2>, %p: memref<21x2xf32>, %q: memref<2x2xf32>,
                     %t: memref<160x136xf8E4M3FN>, %u: memref<21x1xf32>, %v: memref<2x136xf32>,
                     %c: memref<21x136xf32>, %d: memref<21x136xf16>, %e: memref<21x136xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c21 = arith.constant 21 : index
  %c40 = arith.constant 40 : index
  %c136 = arith.constant 136 : index
  %c160 = arith.constant 160 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c16 : index
  %step = arith.muli %blocks, %c16 : index
  scf.for %i = %first to %c21 step %step {
    %down = arith.subi %c21, %i : index
    %rows = arith.minsi %down, %c16 : index
    scf.for %j = %c0 to %c136 step %c40 {
      %right = arith.subi %c136, %j : index
      %columns = arith.minsi %right, %c40 : index
      comms.contract %a[%i, %c0], %b[%j, %c0] to %c[%i, %j] tile [16, 40] depth %c160 rows %rows columns %columns
        scaled by %p, %q {accumulate, transpose_rhs}
        : memref<21x160xf8E4M3FN>, memref<136x160xf8E5M2>, memref<21x136xf32> scaled by memref<21x2xf32>, memref<2x2xf32>
      comms.contract %a[%i, %c0], %t[%c0, %j] to %e[%i, %j] tile [16, 40] depth %c160 rows %rows columns %columns
        scaled by %u, %v plus %d[%i, %j]
        : memref<21x160xf8E4M3FN>, memref<160x136xf8E4M3FN>, memref<21x136xf32> scaled by memref<21x1xf32>, memref<2x136xf32>
        plus memref<21x136xf16>
    }
  }
  comms.return
}
