// RUN: %python %S/emulate.py %s --ranks 1 --gpu "blocks=1 threads=64 cluster=2 chip=sm_90" --weak | FileCheck %s
// CHECK: the same bits

// A row that CTAs of a cluster reduce by counting what arrives orders nothing else: threads that touch each
// other's elements before it and behind it (%y is written and then read, %w read and then written) meet all the same.
comms.kernel @order(%x: memref<1024xf32>, %y: memref<1024xf32>, %z: memref<1024xf32>, %w: memref<1024xf32>, %v: memref<512xf32>) attributes {blocks = 1} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %t = comms.tile_load %x[%c0] : memref<1024xf32> -> tensor<1024xf32>
  comms.tile_store %t, %y[%c0] : tensor<1024xf32>, memref<1024xf32>
  %u = comms.tile_load %w[%c3] : memref<1024xf32> -> tensor<512xf32>
  comms.tile_store %u, %v[%c0] : tensor<512xf32>, memref<512xf32>
  %s = comms.row_reduce sum %t : tensor<1024xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<1024xf32>
  %r = comms.tile_load %y[%c3] : memref<1024xf32> -> tensor<512xf32>
  comms.tile_store %r, %z[%c0] : tensor<512xf32>, memref<1024xf32>
  comms.tile_store %b, %w[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.return
}
