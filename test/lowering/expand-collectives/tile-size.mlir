// RUN: comms-opt %s --comms-expand-collectives="ranks=2 protocol=ll128 tile-size=9223372036854775807" | FileCheck %s

// No tile is larger than the array, however large it is asked to be; lines make
// it a multiple of 32.
// CHECK: protocol = "ll128", tile = 1024 : i64, tiles = 1 : i64
comms.kernel @sum(%x: memref<1000xf32>, %y: memref<1000xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1000xf32>) outs(%y : memref<1000xf32>)
  comms.return
}
