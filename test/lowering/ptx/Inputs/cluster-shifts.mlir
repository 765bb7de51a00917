// The first meeting of a cluster's CTAs is for a load, and not for their start.
comms.kernel @cluster_shifts(%x: memref<256xi32>, %w: memref<256xi32>, %y: memref<256xi32>) attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = comms.tile_load %x[%c0] : memref<256xi32> -> tensor<256xi32>
  comms.tile_store %t, %w[%c0] : tensor<256xi32>, memref<256xi32>
  %u = comms.tile_load %w[%c1] : memref<256xi32> -> tensor<240xi32>
  comms.tile_store %u, %y[%c0] : tensor<240xi32>, memref<256xi32>
  comms.return
}
