// EXEC: comms.scatter
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((8, 9)).astype(np.float32)' \
// RUN:   'y = xs[0][2 * r : 2 * r + 2]'
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Rank r gets rows 2r and 2r+1 of the root.
comms.kernel @scatter(%x: !comms.window<8x9xf32>, %y: !comms.window<2x9xf32>) {
  %team = comms.team world
  comms.scatter root 0 %team ins(%x : !comms.window<8x9xf32>) outs(%y : !comms.window<2x9xf32>)
  comms.return
}
