// EXEC: comms.all_gather
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((2, 33)).astype(np.float32)' \
// RUN:   'y = np.concatenate(xs)'
// RUN: %python %S/sweep.py --algorithms one_shot,ring,permutation --protocols pull,push,ll,ll128 --blocks 1,3 \
// RUN:   %s --ranks 4 --launches 3 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise

// Nothing is computed: the bits are those of the inputs.
comms.kernel @all_gather(%x: !comms.window<2x33xf32>, %y: !comms.window<8x33xf32>) {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<2x33xf32>) outs(%y : !comms.window<8x33xf32>)
  comms.return
}
