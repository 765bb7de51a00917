// y = x * factor, rank by rank; the number of rows is open.
comms.kernel @scale(%x: memref<?x6xf32>, %y: memref<?x6xf32>, %factor: f32) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<?x6xf32>) outs(%y : memref<?x6xf32>)
  comms.return
}

comms.kernel @nothing() {
  comms.return
}
