// A loop is left behind its condition, whatever meets in its body.
comms.kernel @while_stores(%x: memref<64xi32>, %w: memref<64xi32>, %y: memref<1xi32>, %q: memref<64xi32>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %t = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<64xi32>
  %epoch = comms.epoch
  %none = arith.shrui %epoch, %c40 : index
  %n = scf.while (%i = %c0) : (index) -> index {
    comms.tile_store %t, %w[%c0] : tensor<64xi32>, memref<64xi32>
    %more = arith.cmpi slt, %i, %none : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %s = comms.row_reduce sum %t : tensor<64xi32> -> tensor<1xi32>
    comms.tile_store %s, %y[%c0] : tensor<1xi32>, memref<1xi32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  %u = comms.tile_load %w[%c1] : memref<64xi32> -> tensor<62xi32>
  comms.tile_store %u, %q[%c0] : tensor<62xi32>, memref<64xi32>
  comms.return
}
