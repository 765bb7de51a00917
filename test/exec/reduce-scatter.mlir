// EXEC: comms.reduce_scatter
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((8, 33)).astype(np.float32)' \
// RUN:   'y = sum(x.astype(float) for x in xs)[2 * r : 2 * r + 2]'
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll,ll128,lamport --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy 

// Two rows for each rank.
comms.kernel @reduce_scatter(%x: !comms.window<8x33xf32>, %y: !comms.window<2x33xf32>) {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : !comms.window<8x33xf32>) outs(%y : !comms.window<2x33xf32>)
  comms.return
}
