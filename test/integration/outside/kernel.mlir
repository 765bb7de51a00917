comms.kernel @sum(%x: !comms.window<256xf32>, %y: memref<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<256xf32>) outs(%y : memref<256xf32>)
  comms.return
}
