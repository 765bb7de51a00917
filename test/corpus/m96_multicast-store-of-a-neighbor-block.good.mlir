// The repaired twin of: Two blocks store halves to all by the switch; bad: both store the first half.
// From: multimem broadcasts
// META {"ranks": 2, "kw": {"blocks": 2}}
comms.kernel @k(%x: memref<32xf32>, %w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 2, blocks = 2} {
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
  %b = comms.block_id
  %c32 = arith.constant 32 : index
  %base = arith.muli %me, %c32 : index
  %part = arith.muli %b, %c16 : index
  %at = arith.addi %base, %part : index
  %all = comms.multimem %w of %team : !comms.window<64xf32> -> memref<64xf32, #comms.space<multimem>>
  comms.barrier %team grid
  %xat = arith.muli %b, %c16 : index
  %t = comms.tile_load %x[%xat] : memref<32xf32> -> tensor<16xf32>
  comms.multimem_store %t, %all[%at] : tensor<16xf32>, memref<64xf32, #comms.space<multimem>>
  comms.fence acq_rel sys proxy alias
  comms.barrier %team grid
  comms.role "read" blocks 0 to 1 {
    %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
    %g = comms.tile_load %own[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %g, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %team grid
  comms.return
}
