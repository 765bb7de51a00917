// RUN: rm -rf %t && %python %S/bits.py kinds %t
// RUN: %python %S/sweep.py --blocks 1,3 \
// RUN:   %s --ranks 2 --launches 2 --bitwise \
// RUN:   --input x=%t/x-%r.npy --input i=%t/i-%r.npy \
// RUN:   --expect f_prod=%t/f_prod-%r.npy --expect f_min=%t/f_min-%r.npy \
// RUN:   --expect f_max=%t/f_max-%r.npy --expect f_avg=%t/f_avg-%r.npy \
// RUN:   --expect i_sum=%t/i_sum-%r.npy --expect i_prod=%t/i_prod-%r.npy \
// RUN:   --expect i_min=%t/i_min-%r.npy --expect i_max=%t/i_max-%r.npy \
// RUN:   --expect i_avg=%t/i_avg-%r.npy --expect i_and=%t/i_and-%r.npy \
// RUN:   --expect i_or=%t/i_or-%r.npy --expect i_xor=%t/i_xor-%r.npy

// Every kind of row reduction. Integers wrap and are signed.
comms.kernel @kinds(%x: memref<4x77xf32>, %i: memref<4x77xi32>,
    %f_prod: memref<4x1xf32>,
    %f_min: memref<4x1xf32>,
    %f_max: memref<4x1xf32>,
    %f_avg: memref<4x1xf32>,
    %i_sum: memref<4x1xi32>,
    %i_prod: memref<4x1xi32>,
    %i_min: memref<4x1xi32>,
    %i_max: memref<4x1xi32>,
    %i_avg: memref<4x1xi32>,
    %i_and: memref<4x1xi32>,
    %i_or: memref<4x1xi32>,
    %i_xor: memref<4x1xi32>) {
  %c4 = arith.constant 4 : index
  %c77 = arith.constant 77 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %row = %block to %c4 step %blocks {
    %at = arith.muli %row, %c77 : index
    %f = comms.tile_load %x[%at] : memref<4x77xf32> -> tensor<77xf32>
    %n = comms.tile_load %i[%at] : memref<4x77xi32> -> tensor<77xi32>
    %a_prod = comms.row_reduce prod %f : tensor<77xf32> -> tensor<1xf32>
    comms.tile_store %a_prod, %f_prod[%row] : tensor<1xf32>, memref<4x1xf32>
    %a_min = comms.row_reduce min %f : tensor<77xf32> -> tensor<1xf32>
    comms.tile_store %a_min, %f_min[%row] : tensor<1xf32>, memref<4x1xf32>
    %a_max = comms.row_reduce max %f : tensor<77xf32> -> tensor<1xf32>
    comms.tile_store %a_max, %f_max[%row] : tensor<1xf32>, memref<4x1xf32>
    %a_avg = comms.row_reduce avg %f : tensor<77xf32> -> tensor<1xf32>
    comms.tile_store %a_avg, %f_avg[%row] : tensor<1xf32>, memref<4x1xf32>
    %b_sum = comms.row_reduce sum %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_sum, %i_sum[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_prod = comms.row_reduce prod %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_prod, %i_prod[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_min = comms.row_reduce min %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_min, %i_min[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_max = comms.row_reduce max %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_max, %i_max[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_avg = comms.row_reduce avg %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_avg, %i_avg[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_and = comms.row_reduce and %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_and, %i_and[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_or = comms.row_reduce or %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_or, %i_or[%row] : tensor<1xi32>, memref<4x1xi32>
    %b_xor = comms.row_reduce xor %n : tensor<77xi32> -> tensor<1xi32>
    comms.tile_store %b_xor, %i_xor[%row] : tensor<1xi32>, memref<4x1xi32>
  }
  comms.return
}
