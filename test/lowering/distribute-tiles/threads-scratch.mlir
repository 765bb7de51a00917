// RUN: comms-opt %s -comms-distribute-tiles="threads=64 cluster=2" -split-input-file -verify-diagnostics

// What one CTA of a block stores, another would not see.
comms.kernel @parks(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is memory of one CTA, and a block is a cluster of 2: set cluster = 1, or an array that the kernel is given}}
  %scratch = comms.scratch : memref<64xf32>
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %t, %scratch[%c0] : tensor<64xf32>, memref<64xf32>
  %u = comms.tile_load %scratch[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %u, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Parts of a tile pass through such memory.
comms.kernel @parts(%x: memref<64xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  // expected-error @+1 {{passes through memory of one CTA, and a block is a cluster of 2: set cluster = 1}}
  %u = tensor.extract_slice %t[8] [8] [1] : tensor<64xf32> to tensor<8xf32>
  comms.tile_store %u, %y[%c0] : tensor<8xf32>, memref<8xf32>
  comms.return
}
