// EXEC: comms.send_recv
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random(100).astype(np.float32)' \
// RUN:   'y = xs[3] if r == 1 else np.zeros(100, np.float32)'
// RUN: %python %S/sweep.py --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Rank 3 sends, rank 1 receives; the others' outputs stay as they were.
comms.kernel @send_recv(%x: memref<100xf32>, %y: memref<100xf32>) {
  %team = comms.team world
  comms.send_recv %team from 3 to 1 ins(%x : memref<100xf32>) outs(%y : memref<100xf32>)
  comms.return
}
