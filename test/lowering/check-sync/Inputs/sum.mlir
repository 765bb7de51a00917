// A sum over four ranks, large enough for several tiles.
comms.kernel @sum(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
