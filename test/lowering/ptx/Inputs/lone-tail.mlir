// One thread alone, the tenth, has the tile's tail: the mask of what it may
// load is a constant there.
comms.kernel @lone_tail(%x: memref<240xi32>, %boxes: !comms.window<240xi64>)
    attributes {blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c37 = arith.constant 37 : index
  %c40 = arith.constant 40 : index
  %team = comms.team world
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %zero = arith.shrui %epoch, %c40 : index
  %block = comms.block_id
  %first = arith.cmpi eq, %block, %c0 : index
  scf.if %first {
    %whole = comms.tile_load %x[%c40] : memref<240xi32> -> tensor<40xi32>
    %part = comms.tile_load %x[%c40] valid %c37 : memref<240xi32> -> tensor<40xi32>
    %rest = arith.xori %whole, %part : tensor<40xi32>
    %sum = arith.addi %rest, %whole : tensor<40xi32>
    %own = comms.peer %boxes at %zero of %team : !comms.window<240xi64> -> memref<240xi64>
    comms.packet_store %sum, %own[%c0] flag %flag : tensor<40xi32>, memref<240xi64>
  }
  comms.barrier %team block
  comms.return
}
