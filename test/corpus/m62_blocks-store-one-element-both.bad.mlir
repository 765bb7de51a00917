// Blocks share out y by vector stores; bad: stripes of 8 overlap by one.
// From: split of a row between CTAs
// META {"ranks": 2, "kw": {"blocks": 2}}
comms.kernel @k(%x: memref<16xf32>, %y: memref<16xf32>, %z: memref<16xf32>, %s: !comms.signal<4>) attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %b = comms.block_id
  %c8 = arith.constant 7 : index
  %at = arith.muli %b, %c8 : index
  %v = vector.load %x[%at] : memref<16xf32>, vector<8xf32>
  vector.store %v, %y[%at] : memref<16xf32>, vector<8xf32>
  comms.barrier %team grid
  %t = comms.tile_load %y[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.role "last" blocks 1 to 2 {
    comms.tile_store %t, %z[%c0] : tensor<16xf32>, memref<16xf32>
  }
  comms.barrier %team grid
  comms.return
}
