// A sum in permutations through channels, in several rounds, that copies late.
// Of two ranks: between more steps stand barriers that keep ranks in step alone.
comms.kernel @sum(%x: memref<1000xf32>, %y: memref<1000xf32>)
    attributes {ranks = 2 : i64, comms.round_bytes = 512 : i64, comms.step_bytes = 0 : i64, comms.late_copies = 1 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
