comms.kernel @sum(%x: memref<128xf32>, %y: memref<128xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<128xf32>) outs(%y : memref<128xf32>)
  comms.return
}
