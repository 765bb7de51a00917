// EXEC: comms.poison_store comms.poison_load comms.poison_fill
// A NaN arrives canonical, whatever its bits were: one that looks like poison
// would keep the receiver waiting forever. The window is emptied before
// each exchange, so the second and third wait for their own data.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'xf32 = np.concatenate([random(30), [np.inf, -np.inf, 0, -0.0]]).astype(np.float32)' \
// RUN:   'xf32 = np.concatenate([xf32, np.array([0xFFFAFFFA, 0x7FC00001, 0xFF800001], np.uint32).view(np.float32)])' \
// RUN:   'yf32 = np.where(np.isnan(xf32s[r - 1]), np.array([0x7FC00000], np.uint32).view(np.float32), xf32s[r - 1])' \
// RUN:   'xf16 = np.concatenate([random(34).astype(np.float16), np.array([0xFFFA, 0x7E01, 0xFC01], np.uint16).view(np.float16)])' \
// RUN:   'yf16 = np.where(np.isnan(xf16s[r - 1]), np.array([0x7E00], np.uint16).view(np.float16), xf16s[r - 1])' \
// RUN:   'xbf16 = np.concatenate([random(34).astype(bf16), np.array([0xFFFA, 0x7FC1, 0xFF81], np.uint16).view(bf16)])' \
// RUN:   'ybf16 = np.where(np.isnan(xbf16s[r - 1]), np.array([0x7FC0], np.uint16).view(bf16), xbf16s[r - 1])'
// RUN: sed 's/TYPE/f32/g' %s > %t/f32.mlir && comms-run %t/f32.mlir --ranks 3 --launches 3 --input x=%t/xf32-%r.npy --expect y=%t/yf32-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/f16/g' %s > %t/f16.mlir && comms-run %t/f16.mlir --ranks 3 --launches 3 --input x=%t/xf16-%r.npy --expect y=%t/yf16-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/bf16/g' %s > %t/bf16.mlir && comms-run %t/bf16.mlir --ranks 3 --launches 3 --input x=%t/xbf16-%r.npy --expect y=%t/ybf16-%r.npy --bitwise --quiet --fuzz-schedules 5

comms.kernel @poison(%x: memref<37xTYPE>, %y: memref<37xTYPE>, %w: !comms.window<50xTYPE>) attributes {ranks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c37 = arith.constant 37 : index
  %team = comms.team world
  %rank = comms.rank %team
  %after = arith.addi %rank, %c1 : index
  %next = arith.remui %after, %c3 : index
  %own = comms.local %w : !comms.window<50xTYPE> -> memref<50xTYPE>
  %part = comms.peer %w at %next of %team : !comms.window<50xTYPE> -> memref<50xTYPE>
  // Zero, or what the last launch received, lies there.
  comms.poison_fill %own[%c3] count %c37 : memref<50xTYPE>
  comms.barrier %team block
  %tile = comms.tile_load %x[%c0] valid %c37 : memref<37xTYPE> -> tensor<40xTYPE>
  comms.poison_store %tile, %part[%c3] valid %c37 : tensor<40xTYPE>, memref<50xTYPE>
  %got = comms.poison_load %own[%c3] valid %c37 : memref<50xTYPE> -> tensor<40xTYPE>
  comms.tile_store %got, %y[%c0] valid %c37 : tensor<40xTYPE>, memref<37xTYPE>
  comms.barrier %team block
  comms.return
}
