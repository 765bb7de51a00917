// Vectors of bf16 with a masked tail go from block to block of machine code.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = ((np.arange(7) + 3 * r) %% 5).astype(bf16)' \
// RUN:   'y = sum(x.astype(float) for x in xs).astype(bf16)'
// RUN: %python %S/sweep.py --algorithms one_shot,two_shot,ring,permutation --protocols pull,push,ll,ll128,lamport \
// RUN:   %s --ranks 3 --launches 2 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @narrow_tails(%x: memref<7xbf16>, %y: memref<7xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<7xbf16>) outs(%y : memref<7xbf16>)
  comms.return
}
