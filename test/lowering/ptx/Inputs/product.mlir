// Aligned rows; the last tiles and the last stage are not whole.
comms.kernel @product(%a: memref<40x72xbf16>, %b: memref<72x96xbf16>, %c: memref<40x96xbf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %c96 = arith.constant 96 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c32 : index
  %step = arith.muli %blocks, %c32 : index
  scf.for %i = %first to %c40 step %step {
    %down = arith.subi %c40, %i : index
    %rows = arith.minsi %down, %c32 : index
    scf.for %j = %c0 to %c96 step %c64 {
      %right = arith.subi %c96, %j : index
      %columns = arith.minsi %right, %c64 : index
      comms.contract %a[%i, %c0], %b[%c0, %j] to %c[%i, %j] tile [32, 64] depth %c72 rows %rows columns %columns
        : memref<40x72xbf16>, memref<72x96xbf16>, memref<40x96xbf16>
    }
  }
  comms.return
}
