// EXEC: comms.all_reduce
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 5 \
// RUN:   'x = random(1000).astype(np.float32)' \
// RUN:   'y = sum(x.astype(float) for x in xs)'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring,permutation --protocols pull,push,ll,ll128,lamport --blocks 1,3 \
// RUN:   %s --ranks 5 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy 

// A size that no tile and no number of ranks divides.
comms.kernel @all_reduce(%x: !comms.window<1000xf32>, %y: !comms.window<1000xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1000xf32>) outs(%y : !comms.window<1000xf32>)
  comms.return
}
