// RUN: comms-opt %s -comms-check-sync=blocks=2 -split-input-file -verify-diagnostics -o %t

// Every block doubles the whole array: the second finds what the first has doubled.

comms.kernel @doubles(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'comms.tile_load' op reads [0, 64) of 'x' at rank 0 on rank 0 block 1 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{every block of the rank does this, and may find what another has written: share the elements out by comms.block_id, or give the kernel one block}}
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %b = arith.addf %a, %a : tensor<64xf32>
  // expected-note @below {{the write}}
  comms.tile_store %b, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// So it may be where blocks of other ranks come together, and not those of one.

comms.kernel @doubles_later(%x: memref<64xf32>, %w: !comms.window<64xf32>) {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  // expected-error @below {{'comms.tile_load' op reads [0, 64) of 'x' at rank 3 on rank 3 block 1 in launch 1, with no order between it and the write by rank 3 block 0 in launch 1}}
  // expected-note @below {{every block of the rank does this}}
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %b = arith.addf %a, %a : tensor<64xf32>
  comms.barrier %world block
  // expected-note @below {{the write}}
  comms.tile_store %b, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// A barrier of all blocks lets them all have read before any of them writes.

comms.kernel @doubles_in_time(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %b = arith.addf %a, %a : tensor<64xf32>
  comms.barrier %world grid
  comms.tile_store %b, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// All write the same, and read what all have written.

comms.kernel @copies(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %a, %y[%c0] : tensor<64xf32>, memref<64xf32>
  %b = comms.tile_load %y[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %b, %z[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Each block has a part of its own.

comms.kernel @shares(%x: memref<64xf32>) {
  %block = comms.block_id
  %c32 = arith.constant 32 : index
  %at = arith.muli %block, %c32 : index
  %a = comms.tile_load %x[%at] : memref<64xf32> -> tensor<32xf32>
  %b = arith.addf %a, %a : tensor<32xf32>
  comms.tile_store %b, %x[%at] : tensor<32xf32>, memref<64xf32>
  comms.return
}

// -----

// What is read between two writes may be of the other block's second, or first.

comms.kernel @twice(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %a, %y[%c0] : tensor<64xf32>, memref<64xf32>
  // expected-error @below {{'comms.tile_load' op reads [0, 64) of 'y' at rank 0 on rank 0 block 1 in launch 1, with no order between it and the write by rank 0 block 0 in launch 1}}
  // expected-note @below {{every block of the rank does this, and may find what another has written}}
  %b = comms.tile_load %y[%c0] : memref<64xf32> -> tensor<64xf32>
  %c = arith.addf %b, %b : tensor<64xf32>
  // expected-note @below {{the write}}
  comms.tile_store %c, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// A barrier of all blocks before the second write: all have read the first.

comms.kernel @twice_in_time(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %a = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %a, %y[%c0] : tensor<64xf32>, memref<64xf32>
  %b = comms.tile_load %y[%c0] : memref<64xf32> -> tensor<64xf32>
  %c = arith.addf %b, %b : tensor<64xf32>
  comms.barrier %world grid
  comms.tile_store %c, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// All fetch the same, each waits until its own has come, and reads it.

comms.kernel @fetches(%x: !comms.window<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  comms.get %x[%c0] to %y[%c0] count %c64 at %c0 of %world : !comms.window<64xf32>, memref<64xf32>
  comms.flush %world
  %b = comms.tile_load %y[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %b, %z[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
