// EXEC: comms.packet_store comms.packet_load
// Packets keep every bit of every type; 37 elements of a tile of 40 exist.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'bits = (np.arange(37 * 8) * 37 + 11 * r).astype(np.uint8)' \
// RUN:   'xi8 = bits[:37].view(np.int8)' 'xi16 = bits[:74].view(np.int16)' 'xi32 = bits[:148].view(np.int32)' 'xi64 = bits.view(np.int64)' \
// RUN:   'xf8E4M3FN = bits[:37].view(f8)' 'xbf16 = bits[:74].view(bf16)' 'xf16 = bits[:74].view(np.float16)' 'xf32 = bits[:148].view(np.float32)' 'xf64 = bits.view(np.float64)' \
// RUN:   'yi8 = xi8s[r - 1]' 'yi16 = xi16s[r - 1]' 'yi32 = xi32s[r - 1]' 'yi64 = xi64s[r - 1]' \
// RUN:   'yf8E4M3FN = xf8E4M3FNs[r - 1]' 'ybf16 = xbf16s[r - 1]' 'yf16 = xf16s[r - 1]' 'yf32 = xf32s[r - 1]' 'yf64 = xf64s[r - 1]'
// RUN: sed 's/TYPE/i8/g' %s > %t/i8.mlir && comms-run %t/i8.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xi8-%r.npy --expect y=%t/yi8-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/i16/g' %s > %t/i16.mlir && comms-run %t/i16.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xi16-%r.npy --expect y=%t/yi16-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/i32/g' %s > %t/i32.mlir && comms-run %t/i32.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xi32-%r.npy --expect y=%t/yi32-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/i64/g' %s > %t/i64.mlir && comms-run %t/i64.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xi64-%r.npy --expect y=%t/yi64-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/f8E4M3FN/g' %s > %t/f8E4M3FN.mlir && comms-run %t/f8E4M3FN.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xf8E4M3FN-%r.npy --expect y=%t/yf8E4M3FN-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/bf16/g' %s > %t/bf16.mlir && comms-run %t/bf16.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xbf16-%r.npy --expect y=%t/ybf16-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/f16/g' %s > %t/f16.mlir && comms-run %t/f16.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xf16-%r.npy --expect y=%t/yf16-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/f32/g' %s > %t/f32.mlir && comms-run %t/f32.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xf32-%r.npy --expect y=%t/yf32-%r.npy --bitwise --quiet --fuzz-schedules 5
// RUN: sed 's/TYPE/f64/g' %s > %t/f64.mlir && comms-run %t/f64.mlir --ranks 3 --blocks 1 --launches 3 --input x=%t/xf64-%r.npy --expect y=%t/yf64-%r.npy --bitwise --quiet --fuzz-schedules 5

comms.kernel @packets(%x: memref<37xTYPE>, %y: memref<37xTYPE>, %w: !comms.window<90xi64>) attributes {ranks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c37 = arith.constant 37 : index
  %team = comms.team world
  %rank = comms.rank %team
  %after = arith.addi %rank, %c1 : index
  %next = arith.remui %after, %c3 : index
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %own = comms.local %w : !comms.window<90xi64> -> memref<90xi64>
  %part = comms.peer %w at %next of %team : !comms.window<90xi64> -> memref<90xi64>
  %tile = comms.tile_load %x[%c0] valid %c37 : memref<37xTYPE> -> tensor<40xTYPE>
  comms.packet_store %tile, %part[%c3] flag %flag valid %c37 : tensor<40xTYPE>, memref<90xi64>
  %got = comms.packet_load %own[%c3] flag %flag valid %c37 : memref<90xi64> -> tensor<40xTYPE>
  comms.tile_store %got, %y[%c0] valid %c37 : tensor<40xTYPE>, memref<37xTYPE>
  comms.barrier %team block
  comms.return
}
