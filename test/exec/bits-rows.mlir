// RUN: rm -rf %t && %python %S/bits.py rows %t
// RUN: %python %S/sweep.py --blocks 1,3 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x1=%t/x1-%r.npy --input x2=%t/x2-%r.npy \
// RUN:   --input x7=%t/x7-%r.npy --input x16=%t/x16-%r.npy \
// RUN:   --input x17=%t/x17-%r.npy --input x100=%t/x100-%r.npy \
// RUN:   --input x256=%t/x256-%r.npy --input x1000=%t/x1000-%r.npy \
// RUN:   --input x4096=%t/x4096-%r.npy --input x8192=%t/x8192-%r.npy \
// RUN:   --input x20000=%t/x20000-%r.npy --expect s1=%t/s1-%r.npy \
// RUN:   --expect s2=%t/s2-%r.npy --expect s7=%t/s7-%r.npy \
// RUN:   --expect s16=%t/s16-%r.npy --expect s17=%t/s17-%r.npy \
// RUN:   --expect s100=%t/s100-%r.npy --expect s256=%t/s256-%r.npy \
// RUN:   --expect s1000=%t/s1000-%r.npy --expect s4096=%t/s4096-%r.npy \
// RUN:   --expect s8192=%t/s8192-%r.npy --expect s20000=%t/s20000-%r.npy

// A row's sum has one order, which depends on its length alone; the lengths are below a
// vector, between two and beyond the tree's lanes. A row of -0.0 sums to -0.0.
comms.kernel @rows(
    %x1: memref<4x1xf32>, %s1: memref<4x1xf32>,
    %x2: memref<4x2xf32>, %s2: memref<4x1xf32>,
    %x7: memref<4x7xf32>, %s7: memref<4x1xf32>,
    %x16: memref<4x16xf32>, %s16: memref<4x1xf32>,
    %x17: memref<4x17xf32>, %s17: memref<4x1xf32>,
    %x100: memref<4x100xf32>, %s100: memref<4x1xf32>,
    %x256: memref<4x256xf32>, %s256: memref<4x1xf32>,
    %x1000: memref<4x1000xf32>, %s1000: memref<4x1xf32>,
    %x4096: memref<4x4096xf32>, %s4096: memref<4x1xf32>,
    %x8192: memref<4x8192xf32>, %s8192: memref<4x1xf32>,
    %x20000: memref<4x20000xf32>, %s20000: memref<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %row = %block to %c4 step %blocks {
    %n1 = arith.constant 1 : index
    %at1 = arith.muli %row, %n1 : index
    %t1 = comms.tile_load %x1[%at1] : memref<4x1xf32> -> tensor<1xf32>
    %r1 = comms.row_reduce sum %t1 : tensor<1xf32> -> tensor<1xf32>
    comms.tile_store %r1, %s1[%row] : tensor<1xf32>, memref<4x1xf32>
    %n2 = arith.constant 2 : index
    %at2 = arith.muli %row, %n2 : index
    %t2 = comms.tile_load %x2[%at2] : memref<4x2xf32> -> tensor<2xf32>
    %r2 = comms.row_reduce sum %t2 : tensor<2xf32> -> tensor<1xf32>
    comms.tile_store %r2, %s2[%row] : tensor<1xf32>, memref<4x1xf32>
    %n7 = arith.constant 7 : index
    %at7 = arith.muli %row, %n7 : index
    %t7 = comms.tile_load %x7[%at7] : memref<4x7xf32> -> tensor<7xf32>
    %r7 = comms.row_reduce sum %t7 : tensor<7xf32> -> tensor<1xf32>
    comms.tile_store %r7, %s7[%row] : tensor<1xf32>, memref<4x1xf32>
    %n16 = arith.constant 16 : index
    %at16 = arith.muli %row, %n16 : index
    %t16 = comms.tile_load %x16[%at16] : memref<4x16xf32> -> tensor<16xf32>
    %r16 = comms.row_reduce sum %t16 : tensor<16xf32> -> tensor<1xf32>
    comms.tile_store %r16, %s16[%row] : tensor<1xf32>, memref<4x1xf32>
    %n17 = arith.constant 17 : index
    %at17 = arith.muli %row, %n17 : index
    %t17 = comms.tile_load %x17[%at17] : memref<4x17xf32> -> tensor<17xf32>
    %r17 = comms.row_reduce sum %t17 : tensor<17xf32> -> tensor<1xf32>
    comms.tile_store %r17, %s17[%row] : tensor<1xf32>, memref<4x1xf32>
    %n100 = arith.constant 100 : index
    %at100 = arith.muli %row, %n100 : index
    %t100 = comms.tile_load %x100[%at100] : memref<4x100xf32> -> tensor<100xf32>
    %r100 = comms.row_reduce sum %t100 : tensor<100xf32> -> tensor<1xf32>
    comms.tile_store %r100, %s100[%row] : tensor<1xf32>, memref<4x1xf32>
    %n256 = arith.constant 256 : index
    %at256 = arith.muli %row, %n256 : index
    %t256 = comms.tile_load %x256[%at256] : memref<4x256xf32> -> tensor<256xf32>
    %r256 = comms.row_reduce sum %t256 : tensor<256xf32> -> tensor<1xf32>
    comms.tile_store %r256, %s256[%row] : tensor<1xf32>, memref<4x1xf32>
    %n1000 = arith.constant 1000 : index
    %at1000 = arith.muli %row, %n1000 : index
    %t1000 = comms.tile_load %x1000[%at1000] : memref<4x1000xf32> -> tensor<1000xf32>
    %r1000 = comms.row_reduce sum %t1000 : tensor<1000xf32> -> tensor<1xf32>
    comms.tile_store %r1000, %s1000[%row] : tensor<1xf32>, memref<4x1xf32>
    %n4096 = arith.constant 4096 : index
    %at4096 = arith.muli %row, %n4096 : index
    %t4096 = comms.tile_load %x4096[%at4096] : memref<4x4096xf32> -> tensor<4096xf32>
    %r4096 = comms.row_reduce sum %t4096 : tensor<4096xf32> -> tensor<1xf32>
    comms.tile_store %r4096, %s4096[%row] : tensor<1xf32>, memref<4x1xf32>
    %n8192 = arith.constant 8192 : index
    %at8192 = arith.muli %row, %n8192 : index
    %t8192 = comms.tile_load %x8192[%at8192] : memref<4x8192xf32> -> tensor<8192xf32>
    %r8192 = comms.row_reduce sum %t8192 : tensor<8192xf32> -> tensor<1xf32>
    comms.tile_store %r8192, %s8192[%row] : tensor<1xf32>, memref<4x1xf32>
    %n20000 = arith.constant 20000 : index
    %at20000 = arith.muli %row, %n20000 : index
    %t20000 = comms.tile_load %x20000[%at20000] : memref<4x20000xf32> -> tensor<20000xf32>
    %r20000 = comms.row_reduce sum %t20000 : tensor<20000xf32> -> tensor<1xf32>
    comms.tile_store %r20000, %s20000[%row] : tensor<1xf32>, memref<4x1xf32>
  }
  comms.return
}
