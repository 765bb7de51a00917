// EXEC: comms.contract
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'a = random((13, 21)).astype(np.float32)' \
// RUN:   'b = random((21, 35)).astype(np.float32)' \
// RUN:   'd = random((2, 13, 35)).astype(np.float32)' \
// RUN:   'e = random((15, 40)).astype(np.float16)' \
// RUN:   'c = np.zeros((15, 40), np.float32)' \
// RUN:   'y = np.concatenate([np.concatenate([a.astype(float) @ b.astype(float) + d[1] + e[2:15, 4:39], c[:13, 35:]], 1), c[13:]])'
// RUN: comms-run %s --ranks 2 --input a=%t/a-%r.npy --input b=%t/b-%r.npy --input d=%t/d-%r.npy --input e=%t/e-%r.npy --expect c=%t/y-%r.npy --quiet

// Two addends of other types and places, by tiles of which the last are not
// whole.
comms.kernel @addends(%a: memref<13x21xf32>, %b: memref<21x35xf32>, %d: memref<2x13x35xf32>, %e: memref<15x40xf16>,
                      %c: memref<15x40xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c13 = arith.constant 13 : index
  %c21 = arith.constant 21 : index
  %c24 = arith.constant 24 : index
  %c35 = arith.constant 35 : index
  scf.for %i = %c0 to %c13 step %c8 {
    %down = arith.subi %c13, %i : index
    %rows = arith.minsi %down, %c8 : index
    %second = arith.addi %i, %c13 : index
    %line = arith.addi %i, %c2 : index
    scf.for %j = %c0 to %c35 step %c24 {
      %right = arith.subi %c35, %j : index
      %columns = arith.minsi %right, %c24 : index
      %column = arith.addi %j, %c4 : index
      comms.contract %a[%i, %c0], %b[%c0, %j] to %c[%i, %j] tile [8, 24] depth %c21 rows %rows columns %columns
        plus %d[%second, %j], %e[%line, %column]
        : memref<13x21xf32>, memref<21x35xf32>, memref<15x40xf32> plus memref<2x13x35xf32>, memref<15x40xf16>
    }
  }
  comms.return
}
