// EXEC: comms.local comms.peer comms.barrier comms.tile_load comms.tile_store comms.for_peers comms.scratch
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = 100 * r + np.arange(20, dtype=np.float32)' \
// RUN:   'y = sum(xs)'
// RUN: comms-run %s --ranks 4 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --fuzz-schedules 5 --quiet
// RUN: comms-run %s --ranks 1 --input x=%t/x-%r.npy --expect y=%t/x-0.npy --quiet

// Every rank adds up what it reads from its peers' parts, in scratch memory.
comms.kernel @windows(%x: !comms.window<20xf32>, %y: memref<20xf32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %own = comms.local %x : !comms.window<20xf32> -> memref<20xf32>
  %sum = comms.scratch : memref<20xf32>
  %mine = comms.tile_load %own[%c0] : memref<20xf32> -> tensor<20xf32>
  comms.tile_store %mine, %sum[%c0] : tensor<20xf32>, memref<20xf32>
  comms.barrier %team block
  comms.for_peers %team as %peer {
    %view = comms.peer %x at %peer of %team : !comms.window<20xf32> -> memref<20xf32>
    %theirs = comms.tile_load %view[%c0] : memref<20xf32> -> tensor<20xf32>
    %before = comms.tile_load %sum[%c0] : memref<20xf32> -> tensor<20xf32>
    %after = arith.addf %before, %theirs : tensor<20xf32>
    comms.tile_store %after, %sum[%c0] : tensor<20xf32>, memref<20xf32>
  }
  %all = comms.tile_load %sum[%c0] : memref<20xf32> -> tensor<20xf32>
  comms.tile_store %all, %y[%c0] : tensor<20xf32>, memref<20xf32>
  comms.return
}
