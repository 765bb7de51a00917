// An array of rank 2 is not cut within its rows: one row for one rank is a whole row, though the run alone says its ranks.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'x = np.arange(64, dtype=np.float32).reshape(1, 64)' 'y = np.full((1, 64), 2016, np.float32)'
// RUN: comms-run %s --ranks 1 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise
// RUN: not comms-run %s --ranks 2 2>&1 | FileCheck %s
// CHECK: C13: 1 rows cannot be cut into 2 equal parts

comms.kernel @one(%x: !comms.window<1x64xf32>, %y: memref<1x64xf32>) {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<1x64xf32>) outs(%y : memref<1x64xf32>)
    consume(%row: tensor<64xf32>) {
      %sum = comms.row_reduce sum %row : tensor<64xf32> -> tensor<1xf32>
      %all = comms.broadcast_row %sum : tensor<1xf32> -> tensor<64xf32>
      comms.yield %all : tensor<64xf32>
    }
  comms.return
}
