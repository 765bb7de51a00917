// RUN: comms-opt %s -comms-expand-collectives="ranks=2 threads=128 cluster=2" -split-input-file | FileCheck %s
// RUN: not comms-opt %s -comms-expand-collectives="ranks=2 threads=2048" -split-input-file 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: comms-expand-collectives: threads = 2048, cluster = 1 is not a block: a CTA has at most 1024 threads, a cluster at most 16 CTAs

// 256 threads with 16 bytes of f32.
// CHECK-LABEL: comms.kernel @wide
// CHECK-SAME:    tile = 1024 : i64, tiles = 4 : i64
comms.kernel @wide(%x: memref<4096xf32>, %y: memref<4096xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<4096xf32>) outs(%y : memref<4096xf32>) {algorithm = "one_shot"}
  comms.return
}

// -----

// The narrowest element decides.
// CHECK-LABEL: comms.kernel @narrow
// CHECK-SAME:    tile = 2048 : i64, tiles = 2 : i64
comms.kernel @narrow(%x: memref<4096xbf16>, %y: memref<4096xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<4096xbf16>) outs(%y : memref<4096xf32>)
  consume (%sum: tensor<4096xf32>) {
    comms.yield %sum : tensor<4096xf32>
  }
  comms.return
}

// -----

// Small arrays are one tile.
// CHECK-LABEL: comms.kernel @small
// CHECK-SAME:    tile = 112 : i64, tiles = 1 : i64
comms.kernel @small(%x: memref<100xf32>, %y: memref<100xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<100xf32>) outs(%y : memref<100xf32>) {algorithm = "one_shot"}
  comms.return
}

// -----

// Every rank has a tile to reduce.
// CHECK-LABEL: comms.kernel @shared
// CHECK-SAME:    tile = 256 : i64, tiles = 2 : i64
comms.kernel @shared(%x: memref<512xf32>, %y: memref<512xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>) {algorithm = "two_shot"}
  comms.return
}
