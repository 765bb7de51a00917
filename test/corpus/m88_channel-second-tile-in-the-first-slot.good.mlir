// The repaired twin of: A pairwise channel carries two tiles a launch; bad: both in slot 0.
// From: channels
// META {"ranks": 2}
comms.kernel @k(%x: memref<32xf32>, %y: memref<32xf32>) attributes {ranks = 2, blocks = 1} {
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
  %ch = comms.channel 0 pairwise over %team slots 2 : !comms.channel<ll, 16xf32>
  %a = comms.tile_load %x[%c0] : memref<32xf32> -> tensor<16xf32>
  %b = comms.tile_load %x[%c16] : memref<32xf32> -> tensor<16xf32>
  comms.send %a on %ch[%c0] to %nxt : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.send %b on %ch[%c1] to %nxt : tensor<16xf32>, !comms.channel<ll, 16xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 16xf32>
  %ra = comms.recv %ch[%c0] from %nxt : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  %rb = comms.recv %ch[%c1] from %nxt : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  comms.tile_store %ra, %y[%c0] : tensor<16xf32>, memref<32xf32>
  comms.tile_store %rb, %y[%c16] : tensor<16xf32>, memref<32xf32>
  comms.return
}
