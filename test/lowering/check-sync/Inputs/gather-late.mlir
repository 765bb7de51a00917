// Parts that are copied late out of their slots, in several rounds.
comms.kernel @gather(%x: memref<300xf32>, %y: memref<900xf32>)
    attributes {ranks = 3 : i64, comms.round_bytes = 512 : i64, comms.step_bytes = 0 : i64, comms.late_copies = 1 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<300xf32>) outs(%y : memref<900xf32>)
  comms.return
}
