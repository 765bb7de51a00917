// Tiles of a product go to the peer, which multiplies each as soon as its signal
// has come: what threads copy has been written in the same launch.
comms.kernel @signaled(%x: memref<128x64xbf16>, %w: memref<64x64xbf16>, %box: !comms.window<2x128x64xbf16>,
                       %s: !comms.signal<2>, %y: memref<128x64xbf16>) {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %me = comms.rank %world
  %peer = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %until = arith.index_cast %epoch : index to i64
  %half = arith.remui %epoch, %c2 : index
  %first = arith.muli %half, %c128 : index
  %theirs = comms.peer %box at %peer of %world : !comms.window<2x128x64xbf16> -> memref<2x128x64xbf16>
  scf.for %tile = %c0 to %c2 step %c1 {
    %row = arith.muli %tile, %c64 : index
    %to = arith.addi %first, %row : index
    comms.contract %x[%row, %c0], %w[%c0, %c0] to %theirs[%to, %c0] tile [64, 64] depth %c64
      : memref<128x64xbf16>, memref<64x64xbf16>, memref<2x128x64xbf16>
    comms.signal inc %s[%tile] at %peer of %world : !comms.signal<2>
  }
  %mine = comms.local %box : !comms.window<2x128x64xbf16> -> memref<2x128x64xbf16>
  scf.for %tile = %c0 to %c2 step %c1 {
    %row = arith.muli %tile, %c64 : index
    %from = arith.addi %first, %row : index
    %t = comms.wait_signal %s[%tile] ge %until : !comms.signal<2>
    comms.contract %mine[%from, %c0], %w[%c0, %c0] to %y[%row, %c0] tile [64, 64] depth %c64 plus %x[%row, %c0] {transpose_rhs}
      : memref<2x128x64xbf16>, memref<64x64xbf16>, memref<128x64xbf16> plus memref<128x64xbf16>
  }
  comms.return
}
