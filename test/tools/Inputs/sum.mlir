// Adds up x over the ranks.
comms.kernel @sum(%x: !comms.window<4x6xf32>, %y: !comms.window<4x6xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x6xf32>) outs(%y : !comms.window<4x6xf32>)
  comms.return
}
