// Broadcast, reduce, gather and scatter by a root that the launch gives.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 'x = (np.arange(192) % 7 + r).astype(np.float32)' \
// RUN:   'b = xs[2]' 's = sum(xs).astype(np.float32) if r == 2 else np.zeros(192, np.float32)' \
// RUN:   'g = np.concatenate(xs) if r == 2 else np.zeros(576, np.float32)' 'c = xs[2][64 * r : 64 * r + 64]'
// RUN: %python %S/sweep.py --algorithms one_shot --protocols pull,push,ll,ll128 --blocks 2 \
// RUN:   %s --ranks 3 --launches 4 --input x=%t/x-%r.npy --input root=2 --expect b=%t/b-%r.npy --expect s=%t/s-%r.npy \
// RUN:   --expect g=%t/g-%r.npy --expect c=%t/c-%r.npy --bitwise | FileCheck %s
// CHECK: 4 runs agree
// RUN: not comms-run %s --ranks 3 --input root=3 --quiet 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: root of broadcast

comms.kernel @rooted(%x: memref<192xf32>, %b: memref<192xf32>, %s: memref<192xf32>, %g: memref<576xf32>, %c: memref<64xf32>, %root: index {comms.run_time_root}) {
  %team = comms.team world
  comms.broadcast root 0 %team ins(%x : memref<192xf32>) outs(%b : memref<192xf32>)
  comms.reduce sum root 0 %team ins(%x : memref<192xf32>) outs(%s : memref<192xf32>)
  comms.gather root 0 %team ins(%x : memref<192xf32>) outs(%g : memref<576xf32>)
  comms.scatter root 0 %team ins(%x : memref<192xf32>) outs(%c : memref<64xf32>)
  comms.return
}
