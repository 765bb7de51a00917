// Block 0 stores and tells block 1 of its rank by a relaxed signal with fences; bad: the acquire fence stands before the wait.
// From: fence-based synchronization
// META {"ranks": 2, "kw": {"blocks": 2}}
comms.kernel @k(%x: memref<16xf32>, %v: memref<16xf32>, %s: !comms.signal<1>, %y: memref<16xf32>) attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  comms.role "make" blocks 0 to 1 {
    %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %t, %v[%c0] : tensor<16xf32>, memref<16xf32>
    comms.fence release gpu
    comms.signal inc %s[%c0] at %me of %team order relaxed : !comms.signal<1>
  }
  comms.role "use" blocks 1 to 2 {
    comms.fence acquire gpu
    %z = comms.wait_signal %s[%c0] ge %e order relaxed : !comms.signal<1>
    %g = comms.tile_load %v[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %g, %y[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.barrier %team grid
  comms.return
}
