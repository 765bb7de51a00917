// RUN: comms-opt %s -comms-assert-bounds | FileCheck %s

// CHECK-NOT:  comms.check_bounds
// CHECK:      comms.tile_load %x
// CHECK:      comms.check_bounds "write of y" %at, %[[VALID:.*]] in %c1000
// CHECK-NEXT: comms.tile_store %{{.*}}, %y[%at] valid %[[VALID]]
comms.kernel @rows(%x: memref<1000xf32>, %y: memref<1000xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %t = %block to %c4 step %blocks {
    %offset = arith.muli %t, %c256 : index
    %left = arith.subi %c1000, %offset : index
    %valid = arith.minsi %left, %c256 : index
    %tile = comms.tile_load %x[%offset] valid %valid : memref<1000xf32> -> tensor<256xf32>
    comms.tile_store %tile, %y[%at] valid %valid : tensor<256xf32>, memref<1000xf32>
  }
  comms.return
}
