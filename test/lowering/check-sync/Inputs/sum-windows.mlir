// A sum in permutations straight into the outputs, in several rounds.
comms.kernel @sum(%x: !comms.window<1000xf32>, %y: !comms.window<1000xf32>)
    attributes {ranks = 3 : i64, comms.round_bytes = 512 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1000xf32>) outs(%y : !comms.window<1000xf32>)
  comms.return
}
