// The repaired twin of: A loop carries the number of the cell to wait for; bad: it begins one too far.
// From: scf.for with iter_args
// META {"ranks": 4}
comms.kernel @k(%w: !comms.window<4x16xf32>, %s: !comms.signal<4>, %x: memref<16xf32>, %y: memref<4x16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %own = comms.local %w : !comms.window<4x16xf32> -> memref<4x16xf32>
  %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
  %mine = arith.muli %me, %c16 : index
  scf.for %p = %c0 to %c4 step %c1 {
    %to = comms.peer %w at %p of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
    comms.tile_store %t, %to[%mine] : tensor<16xf32>, memref<4x16xf32>
    comms.signal inc %s[%me] at %p of %team : !comms.signal<4>
  }
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%cell = %c0) -> (index) {
    %z = comms.wait_signal %s[%cell] ge %e : !comms.signal<4>
    %at = arith.muli %i, %c16 : index
    %got = comms.tile_load %own[%at] : memref<4x16xf32> -> tensor<16xf32>
    comms.tile_store %got, %y[%at] : tensor<16xf32>, memref<4x16xf32>
    %n = arith.addi %cell, %c1 : index
    %next = arith.remui %n, %c4 : index
    scf.yield %next : index
  }
  comms.barrier %team block
  comms.return
}
