// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The last tile of 64 begins at 192 of 200.

comms.kernel @last_tile_sticks_out(%w: !comms.window<200xf32>, %x: memref<200xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %c64 = arith.constant 64 : index
  %c200 = arith.constant 200 : index
  scf.for %at = %c0 to %c200 step %c64 {
    // expected-error @below {{'comms.tile_load' op reads elements [192, 256) of 'x', which has 200, on rank 0 block 0 in launch 1}}
    // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
    %tile = comms.tile_load %x[%at] : memref<200xf32> -> tensor<64xf32>
  }
  comms.return
}

// -----

// `valid` shortens it.

comms.kernel @last_tile_is_short(%w: !comms.window<200xf32>, %x: memref<200xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %c64 = arith.constant 64 : index
  %c200 = arith.constant 200 : index
  scf.for %at = %c0 to %c200 step %c64 {
    %rest = arith.subi %c200, %at : index
    %valid = arith.minsi %rest, %c64 : index
    %tile = comms.tile_load %x[%at] valid %valid : memref<200xf32> -> tensor<64xf32>
  }
  comms.return
}
