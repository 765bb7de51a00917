// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'y = random((20, 40)).astype(np.float32)' 'z = np.zeros((20, 40), np.float32)' \
// RUN:   'n = np.full((20, 40), np.nan, np.float32)'
// RUN: comms-run %s --ranks 1 --input y=%t/y-%r.npy --input z=%t/n-%r.npy --expect y=%t/y-%r.npy --expect z=%t/z-%r.npy --quiet

// A sum of no terms is 0, or what was there: the operands have rows, and no
// columns. ../lowering/ptx/contract-no-terms.test has it on GPUs.
comms.kernel @no_terms(%a: memref<20x0xbf16>, %b: memref<40x0xbf16>, %t: memref<0x40xbf16>, %y: memref<20x40xf32>,
                       %z: memref<20x40xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  comms.contract %a[%c8, %c0], %b[%c8, %c0] to %y[%c8, %c8] tile [12, 32] depth %c0 {accumulate, transpose_rhs}
    : memref<20x0xbf16>, memref<40x0xbf16>, memref<20x40xf32>
  comms.contract %a[%c0, %c0], %t[%c0, %c0] to %z[%c0, %c0] tile [20, 40] depth %c0
    : memref<20x0xbf16>, memref<0x40xbf16>, memref<20x40xf32>
  comms.return
}
