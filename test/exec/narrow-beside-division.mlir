// A bf16 is kept across what code generation splits blocks for, a long division.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 2 \
// RUN:   'a = np.array([7 << 40, 9, -5][r:r + 1], np.int64)' 'b = np.array([1.5 + r], bf16)' 'o = a // 3' 'p = b'
// RUN: comms-run %s --ranks 2 --quiet --input a=%t/a-%r.npy --input b=%t/b-%r.npy --expect o=%t/o-%r.npy --expect p=%t/p-%r.npy --bitwise
comms.kernel @divides(%a: memref<1xi64>, %b: memref<1xbf16>, %o: memref<1xi64>, %p: memref<1xbf16>) {
  %c0 = arith.constant 0 : index
  %three = arith.constant 3 : i64
  %by = comms.splat %three : i64 -> tensor<1xi64>
  %x = comms.tile_load %a[%c0] : memref<1xi64> -> tensor<1xi64>
  %y = comms.tile_load %b[%c0] : memref<1xbf16> -> tensor<1xbf16>
  %q = arith.divui %x, %x : tensor<1xi64>
  %r = arith.muli %q, %x : tensor<1xi64>
  %s = arith.divsi %r, %by : tensor<1xi64>
  comms.tile_store %s, %o[%c0] : tensor<1xi64>, memref<1xi64>
  comms.tile_store %y, %p[%c0] : tensor<1xbf16>, memref<1xbf16>
  comms.return
}
