// As many barriers as data say: right where these are the same on all ranks.
comms.kernel @k(%steps: memref<1xi64>, %x: memref<16xf32>, %w: !comms.window<16xf32>, %y: memref<16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %dn0 = arith.addi %me, %n : index
  %dn = arith.subi %dn0, %c1 : index
  %prv = arith.remui %dn, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %flag = arith.index_cast %epoch : index to i32
  %own = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  %to = comms.peer %w at %nxt of %team : !comms.window<16xf32> -> memref<16xf32>
  %count = memref.load %steps[%c0] : memref<1xi64>
  %end = arith.index_cast %count : i64 to index
  scf.for %i = %c0 to %end step %c1 {
    comms.barrier %team block
    %t = comms.tile_load %x[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %t, %to[%c0] : tensor<16xf32>, memref<16xf32>
    comms.barrier %team block
    %got = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
    comms.tile_store %got, %y[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.barrier %team block
  comms.return
}
