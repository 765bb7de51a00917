// Every rank but 0 writes its number to the same cell of rank 0: a race.
comms.kernel @race(%cell: !comms.window<1xi32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %me = comms.rank %team
  %int = arith.index_cast %me : index to i32
  %tile = comms.splat %int : i32 -> tensor<1xi32>
  comms.barrier %team block
  %others = arith.cmpi ne, %me, %c0 : index
  scf.if %others {
    %view = comms.peer %cell at %c0 of %team : !comms.window<1xi32> -> memref<1xi32>
    comms.tile_store %tile, %view[%c0] : tensor<1xi32>, memref<1xi32>
  }
  comms.barrier %team block
  comms.return
}
