// Both operands lie transposed; the product is added, in tiles that are made in
// parts.
comms.kernel @turned(%a: memref<72x40xf16>, %b: memref<104x72xf16>, %c: memref<40x104xf32>) {
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  %c72 = arith.constant 72 : index
  %c104 = arith.constant 104 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c40 : index
  %step = arith.muli %blocks, %c40 : index
  scf.for %i = %first to %c40 step %step {
    %down = arith.subi %c40, %i : index
    %rows = arith.minsi %down, %c40 : index
    scf.for %j = %c0 to %c104 step %c104 {
      %right = arith.subi %c104, %j : index
      %columns = arith.minsi %right, %c104 : index
      comms.contract %a[%c0, %i], %b[%j, %c0] to %c[%i, %j] tile [40, 104] depth %c72 rows %rows columns %columns {accumulate, transpose_lhs, transpose_rhs}
        : memref<72x40xf16>, memref<104x72xf16>, memref<40x104xf32>
    }
  }
  comms.return
}
