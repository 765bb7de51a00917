// EXEC: comms.broadcast
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random(500).astype(np.float32)' \
// RUN:   'y = xs[2]'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// From a root that is not the first rank.
comms.kernel @broadcast(%x: !comms.window<500xf32>, %y: !comms.window<500xf32>) {
  %team = comms.team world
  comms.broadcast root 2 %team ins(%x : !comms.window<500xf32>) outs(%y : !comms.window<500xf32>)
  comms.return
}
