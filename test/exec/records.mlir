// EXEC: comms.check_bounds comms.record_access comms.record_sync
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'x = np.arange(8, dtype=np.float32)'
// RUN: comms-run %s --ranks 1 --input x=%t/x-%r.npy --input at=4 --expect y=%t/x-%r.npy --instrument --quiet
// RUN: not comms-run %s --ranks 1 --input x=%t/x-%r.npy --input at=5 --quiet 2>&1 | FileCheck %s
// RUN: not comms-run %s --ranks 1 --input x=%t/x-%r.npy --input at=-1 --quiet 2>&1 | FileCheck %s

// Within bounds the run ends; beyond them it is ended, and nothing is read.
// CHECK: records
// CHECK: the second half
comms.kernel @records(%x: memref<8xf32>, %y: memref<8xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  comms.check_bounds "the second half" %at, %c4 in %c8
  comms.record_sync "start" (%at)
  comms.record_access read %x[%at] count %c4 : memref<8xf32>
  %a = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<4xf32>
  %b = comms.tile_load %x[%at] : memref<8xf32> -> tensor<4xf32>
  comms.record_access write %y[%at] count %c4 : memref<8xf32>
  comms.tile_store %a, %y[%c0] : tensor<4xf32>, memref<8xf32>
  comms.tile_store %b, %y[%at] : tensor<4xf32>, memref<8xf32>
  comms.return
}
