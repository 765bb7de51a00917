// EXEC: comms.gather
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((2, 9)).astype(np.float32)' \
// RUN:   'y = np.concatenate(xs) if r == 3 else np.zeros((8, 9), np.float32)'
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Other ranks' outputs stay as they were.
comms.kernel @gather(%x: !comms.window<2x9xf32>, %y: !comms.window<8x9xf32>) {
  %team = comms.team world
  comms.gather root 3 %team ins(%x : !comms.window<2x9xf32>) outs(%y : !comms.window<8x9xf32>)
  comms.return
}
