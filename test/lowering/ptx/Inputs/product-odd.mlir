// Rows that are not aligned, of fp8, which are copied element by element.
comms.kernel @odd(%a: memref<21x19xf8E4M3FN>, %b: memref<23x19xf8E5M2>, %c: memref<21x23xf16>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c19 = arith.constant 19 : index
  %c21 = arith.constant 21 : index
  %c23 = arith.constant 23 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c16 : index
  %step = arith.muli %blocks, %c16 : index
  scf.for %i = %first to %c21 step %step {
    %down = arith.subi %c21, %i : index
    %rows = arith.minsi %down, %c16 : index
    scf.for %j = %c0 to %c23 step %c16 {
      %right = arith.subi %c23, %j : index
      %columns = arith.minsi %right, %c16 : index
      comms.contract %a[%i, %c0], %b[%j, %c0] to %c[%i, %j] tile [16, 16] depth %c19 rows %rows columns %columns {transpose_rhs}
        : memref<21x19xf8E4M3FN>, memref<23x19xf8E5M2>, memref<21x23xf16>
    }
  }
  comms.return
}
