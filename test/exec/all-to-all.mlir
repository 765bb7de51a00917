// EXEC: comms.all_to_all
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((8, 33)).astype(np.float32)' \
// RUN:   'y = np.concatenate([x[2 * r : 2 * r + 2] for x in xs])'
// RUN: %python %S/sweep.py --algorithms one_shot,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Rank r gets rows 2r and 2r+1 of every rank.
comms.kernel @all_to_all(%x: !comms.window<8x33xf32>, %y: !comms.window<8x33xf32>) {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<8x33xf32>) outs(%y : !comms.window<8x33xf32>)
  comms.return
}
