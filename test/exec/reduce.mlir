// EXEC: comms.reduce
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = random(70).astype(np.float32)' \
// RUN:   'y = np.maximum.reduce(xs) if r == 1 else np.zeros(70, np.float32)'
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 3 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Other ranks' outputs stay as they were.
comms.kernel @reduce(%x: !comms.window<70xf32>, %y: !comms.window<70xf32>) {
  %team = comms.team world
  comms.reduce max root 1 %team ins(%x : !comms.window<70xf32>) outs(%y : !comms.window<70xf32>)
  comms.return
}
