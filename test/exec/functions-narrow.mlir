// Functions of every bf16 and every f16 are those of f32, rounded once: what differs is 0. Subnormal numbers, zeros,
// infinities and NaN are among them.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 1 \
// RUN:   'b = np.arange(1 << 16, dtype=np.uint16).astype(np.int16)' 'h = np.arange(1 << 16, dtype=np.uint16).astype(np.int16)' \
// RUN:   'y = np.zeros(6 << 16, np.int16)'
// RUN: comms-run %s --ranks 1 --quiet --input b=%t/b-%r.npy --input h=%t/h-%r.npy --expect y=%t/y-%r.npy --bitwise
comms.kernel @functions(%b: memref<65536xi16>, %h: memref<65536xi16>, %y: memref<393216xi16>) {
  %c0 = arith.constant 0 : index
  %at0 = arith.constant 0 : index
  %at1 = arith.constant 65536 : index
  %at2 = arith.constant 131072 : index
  %at3 = arith.constant 196608 : index
  %at4 = arith.constant 262144 : index
  %at5 = arith.constant 327680 : index
  %step = arith.constant 1024 : index
  %end = arith.constant 65536 : index
  scf.for %i = %c0 to %end step %step {
    %bi = comms.tile_load %b[%i] : memref<65536xi16> -> tensor<1024xi16>
    %bx = arith.bitcast %bi : tensor<1024xi16> to tensor<1024xbf16>
    %bw = arith.extf %bx : tensor<1024xbf16> to tensor<1024xf32>
    %hi = comms.tile_load %h[%i] : memref<65536xi16> -> tensor<1024xi16>
    %hx = arith.bitcast %hi : tensor<1024xi16> to tensor<1024xf16>
    %hw = arith.extf %hx : tensor<1024xf16> to tensor<1024xf32>
    %n0 = math.sin %bx : tensor<1024xbf16>
    %w0 = math.sin %bw : tensor<1024xf32>
    %r0 = arith.truncf %w0 : tensor<1024xf32> to tensor<1024xbf16>
    %j0 = arith.bitcast %n0 : tensor<1024xbf16> to tensor<1024xi16>
    %k0 = arith.bitcast %r0 : tensor<1024xbf16> to tensor<1024xi16>
    %d0 = arith.xori %j0, %k0 : tensor<1024xi16>
    %o0 = arith.addi %at0, %i : index
    comms.tile_store %d0, %y[%o0] : tensor<1024xi16>, memref<393216xi16>
    %n1 = math.exp %bx : tensor<1024xbf16>
    %w1 = math.exp %bw : tensor<1024xf32>
    %r1 = arith.truncf %w1 : tensor<1024xf32> to tensor<1024xbf16>
    %j1 = arith.bitcast %n1 : tensor<1024xbf16> to tensor<1024xi16>
    %k1 = arith.bitcast %r1 : tensor<1024xbf16> to tensor<1024xi16>
    %d1 = arith.xori %j1, %k1 : tensor<1024xi16>
    %o1 = arith.addi %at1, %i : index
    comms.tile_store %d1, %y[%o1] : tensor<1024xi16>, memref<393216xi16>
    %n2 = math.log %bx : tensor<1024xbf16>
    %w2 = math.log %bw : tensor<1024xf32>
    %r2 = arith.truncf %w2 : tensor<1024xf32> to tensor<1024xbf16>
    %j2 = arith.bitcast %n2 : tensor<1024xbf16> to tensor<1024xi16>
    %k2 = arith.bitcast %r2 : tensor<1024xbf16> to tensor<1024xi16>
    %d2 = arith.xori %j2, %k2 : tensor<1024xi16>
    %o2 = arith.addi %at2, %i : index
    comms.tile_store %d2, %y[%o2] : tensor<1024xi16>, memref<393216xi16>
    %n3 = math.tan %hx : tensor<1024xf16>
    %w3 = math.tan %hw : tensor<1024xf32>
    %r3 = arith.truncf %w3 : tensor<1024xf32> to tensor<1024xf16>
    %j3 = arith.bitcast %n3 : tensor<1024xf16> to tensor<1024xi16>
    %k3 = arith.bitcast %r3 : tensor<1024xf16> to tensor<1024xi16>
    %d3 = arith.xori %j3, %k3 : tensor<1024xi16>
    %o3 = arith.addi %at3, %i : index
    comms.tile_store %d3, %y[%o3] : tensor<1024xi16>, memref<393216xi16>
    %n4 = math.sinh %hx : tensor<1024xf16>
    %w4 = math.sinh %hw : tensor<1024xf32>
    %r4 = arith.truncf %w4 : tensor<1024xf32> to tensor<1024xf16>
    %j4 = arith.bitcast %n4 : tensor<1024xf16> to tensor<1024xi16>
    %k4 = arith.bitcast %r4 : tensor<1024xf16> to tensor<1024xi16>
    %d4 = arith.xori %j4, %k4 : tensor<1024xi16>
    %o4 = arith.addi %at4, %i : index
    comms.tile_store %d4, %y[%o4] : tensor<1024xi16>, memref<393216xi16>
    %n5 = math.cbrt %hx : tensor<1024xf16>
    %w5 = math.cbrt %hw : tensor<1024xf32>
    %r5 = arith.truncf %w5 : tensor<1024xf32> to tensor<1024xf16>
    %j5 = arith.bitcast %n5 : tensor<1024xf16> to tensor<1024xi16>
    %k5 = arith.bitcast %r5 : tensor<1024xf16> to tensor<1024xi16>
    %d5 = arith.xori %j5, %k5 : tensor<1024xi16>
    %o5 = arith.addi %at5, %i : index
    comms.tile_store %d5, %y[%o5] : tensor<1024xi16>, memref<393216xi16>
  }
  comms.return
}
