// A kernel that stores to the next rank and signals, and one that waits for it.
comms.kernel @produce(%x: !comms.window<64xf32>, %s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %above = arith.addi %me, %c1 : index
  %next = arith.remui %above, %n : index
  %to = comms.peer %x at %next of %world : !comms.window<64xf32> -> memref<64xf32>
  %t = arith.constant dense<1.0> : tensor<64xf32>
  comms.tile_store %t, %to[%c0] : tensor<64xf32>, memref<64xf32>
  comms.signal inc %s[%c0] at %next of %world : !comms.signal<1>
  comms.return
}

comms.kernel @consume(%x: !comms.window<64xf32>, %y: memref<64xf32>, %s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %launch = comms.epoch
  %wanted = arith.index_cast %launch : index to i64
  %token = comms.wait_signal %s[%c0] ge %wanted : !comms.signal<1>
  %own = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  %t = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.return
}
