// Products that threads copy for, some of which have no terms: 0, 64, 128, 0, 64.
comms.kernel @products(%a: memref<64x128xbf16>, %b: memref<128x64xbf16>, %c: memref<5x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %stages = arith.remui %i, %c3 : index
    %terms = arith.muli %stages, %c64 : index
    %row = arith.muli %i, %c64 : index
    comms.contract %a[%c0, %c0], %b[%c0, %c0] to %c[%row, %c0] tile [64, 64] depth %terms
      : memref<64x128xbf16>, memref<128x64xbf16>, memref<5x64x64xf32>
  }
  comms.return
}
