// Ranks 0 and 2 copy into columns of a peer; bad: they are the same ones.
// From: column-parallel outputs written to one buffer
// META {}
comms.kernel @k(%x: memref<8x64xf32>, %w: !comms.window<8x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  comms.barrier %team block
  %to = comms.peer %w at %c1 of %team : !comms.window<8x64xf32> -> memref<8x64xf32>
  %is0 = arith.cmpi eq, %me, %c0 : index
  %is2 = arith.cmpi eq, %me, %c2 : index
  %c8 = arith.constant 8 : index
  %second = arith.constant 15 : index
  scf.if %is0 {
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %v = memref.load %x[%i, %j] : memref<8x64xf32>
        memref.store %v, %to[%i, %j] : memref<8x64xf32>
      }
    }
  }
  scf.if %is2 {
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %v = memref.load %x[%i, %j] : memref<8x64xf32>
        %at = arith.addi %j, %second : index
        memref.store %v, %to[%i, %at] : memref<8x64xf32>
      }
    }
  }
  comms.barrier %team block
  %own = comms.local %w : !comms.window<8x64xf32> -> memref<8x64xf32>
  memref.copy %own, %y : memref<8x64xf32> to memref<8x64xf32>
  comms.barrier %team block
  comms.return
}
