// Regions around the exchange, and the tiles that they ask for.
// RUN: comms-opt %s -split-input-file --comms-expand-collectives="algorithm=one_shot protocol=ll" --canonicalize --cse | FileCheck %s

// Elementwise on whole arrays: flat tiles, regions retyped, constants too.
// CHECK-LABEL: comms.kernel @flat
// CHECK-SAME: tile = 256 : i64, tiles = 2 : i64
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<256xf32>
// CHECK: %[[X:.*]] = comms.tile_load %x[%{{.*}}] valid %[[V:.*]] : memref<4x100xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %[[HALF]] : tensor<256xf32>
// CHECK: %[[WIRE:.*]] = arith.truncf %[[SCALED]] : tensor<256xf32> to tensor<256xbf16>
// CHECK: comms.send %[[WIRE]] {{.*}} valid %[[V]]
// CHECK: %[[RESIDUAL:.*]] = comms.tile_load %r[
// CHECK: arith.addf %{{.*}}, %[[RESIDUAL]] : tensor<256xf32>
comms.kernel @flat(%x: memref<4x100xf32>, %r: memref<4x100xf32>, %y: memref<4x100xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<4x100xf32>) outs(%y : memref<4x100xf32>) args(%r : memref<4x100xf32>)
    produce(%in: tensor<100xf32>) {
      %half = arith.constant dense<0.5> : tensor<100xf32>
      %scaled = arith.mulf %in, %half : tensor<100xf32>
      %wire = arith.truncf %scaled : tensor<100xf32> to tensor<100xbf16>
      comms.yield %wire : tensor<100xbf16>
    }
    consume(%sum: tensor<100xf32>, %res: tensor<100xf32>) {
      %out = arith.addf %sum, %res : tensor<100xf32>
      comms.yield %out : tensor<100xf32>
    }
  comms.return
}

// -----

// A region looks at rows: a tile is a row. The weight is one row for all rows;
// two outputs, of which one holds a number a row.
// CHECK-LABEL: comms.kernel @rows
// CHECK-SAME: tile = 100 : i64, tiles = 4 : i64
// CHECK: comms.channel 0 multicast over %{{.*}} slots 4 : <ll, 100xf32>
// CHECK: %[[ROW:.*]] = comms.recv
// CHECK: %[[WEIGHT:.*]] = comms.tile_load %w[%c0] : memref<100xf32> -> tensor<100xf32>
// CHECK: %[[MAX:.*]] = comms.row_reduce max
// CHECK: comms.tile_store %{{.*}}, %y[%{{.*}}] : tensor<100xf32>, memref<4x100xf32>
// CHECK: comms.tile_store %[[MAX]], %m[%[[T:.*]]] : tensor<1xf32>, memref<4x1xf32>
comms.kernel @rows(%x: memref<4x100xf32>, %w: memref<100xf32>, %y: memref<4x100xf32>, %m: memref<4x1xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<4x100xf32>) outs(%y, %m : memref<4x100xf32>, memref<4x1xf32>) args(%w : memref<100xf32>)
    consume(%sum: tensor<100xf32>, %weight: tensor<100xf32>) {
      %out = arith.mulf %sum, %weight : tensor<100xf32>
      %max = comms.row_reduce max %sum : tensor<100xf32> -> tensor<1xf32>
      comms.yield %out, %max : tensor<100xf32>, tensor<1xf32>
    }
  comms.return
}

// -----

// Two wires of different types and lengths: a channel for each.
// CHECK-LABEL: comms.kernel @wires
// CHECK: %[[DATA:.*]] = comms.channel 0 multicast over %{{.*}} slots 4 : <ll, 64xf8E4M3FN>
// CHECK: %[[SCALE:.*]] = comms.channel 1 multicast over %{{.*}} slots 4 : <ll, 1xf32>
// CHECK: comms.send %{{.*}} on %[[DATA]]
// CHECK: comms.send %{{.*}} on %[[SCALE]]
// CHECK: comms.channel_barrier %[[DATA]]
// CHECK: comms.channel_barrier %[[SCALE]]
// CHECK: comms.recv %[[DATA]]
// CHECK: comms.recv %[[SCALE]]
// CHECK: comms.broadcast_row
comms.kernel @wires(%x: memref<4x64xf32>, %y: memref<8x64xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<4x64xf32>) outs(%y : memref<8x64xf32>)
    produce(%in: tensor<64xf32>) {
      %max = comms.row_reduce max %in : tensor<64xf32> -> tensor<1xf32>
      %scale = comms.broadcast_row %max : tensor<1xf32> -> tensor<64xf32>
      %scaled = arith.divf %in, %scale : tensor<64xf32>
      %narrow = arith.truncf %scaled : tensor<64xf32> to tensor<64xf8E4M3FN>
      comms.yield %narrow, %max : tensor<64xf8E4M3FN>, tensor<1xf32>
    }
    consume(%narrow: tensor<64xf8E4M3FN>, %max: tensor<1xf32>) {
      %wide = arith.extf %narrow : tensor<64xf8E4M3FN> to tensor<64xf32>
      %scale = comms.broadcast_row %max : tensor<1xf32> -> tensor<64xf32>
      %out = arith.mulf %wide, %scale : tensor<64xf32>
      comms.yield %out : tensor<64xf32>
    }
  comms.return
}

// -----

// Constants that have moved out of a region are retyped too.
// CHECK-LABEL: comms.kernel @moved_constant
// CHECK: arith.constant dense<2.000000e+00> : tensor<16xf32>
// CHECK: arith.mulf %{{.*}} : tensor<16xf32>
comms.kernel @moved_constant(%x: memref<10xf32>, %y: memref<10xf32>) attributes {ranks = 2 : i64} {
  %two = arith.constant dense<2.0> : tensor<10xf32>
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<10xf32>) outs(%y : memref<10xf32>)
    produce(%in: tensor<10xf32>) {
      %scaled = arith.mulf %in, %two : tensor<10xf32>
      comms.yield %scaled : tensor<10xf32>
    }
  comms.return
}

// -----

// A constant that differs along the row makes a row of a tile.
// CHECK-LABEL: comms.kernel @row_constant
// CHECK-SAME: tile = 4 : i64, tiles = 8 : i64
comms.kernel @row_constant(%x: memref<8x4xf32>, %y: memref<8x4xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
    produce(%in: tensor<4xf32>) {
      %weights = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %scaled = arith.mulf %in, %weights : tensor<4xf32>
      comms.yield %scaled : tensor<4xf32>
    }
  comms.return
}
