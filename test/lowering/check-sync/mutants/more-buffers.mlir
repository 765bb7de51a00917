// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Of four buffers the first comes round at the fifth launch, of which rank 0 hears nothing.

comms.kernel @four_buffers(%x: !comms.window<64xf32>, %s: !comms.signal<1>, %y: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %world = comms.team world
  %me = comms.rank %world
  %sends = arith.cmpi eq, %me, %c0 : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %c4 = arith.constant 4 : index
  %turn = arith.remui %epoch, %c4 : index
  %at = arith.muli %turn, %c16 : index
  scf.if %sends {
    %there = comms.peer %x at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-error @below {{'comms.tile_store' op writes [16, 32) of 'x' at rank 1 on rank 0 block 0 in launch 5, with no order between it and the read by rank 1 block 0 in launch 1}}
    // expected-note @below {{let the earlier launch end in a barrier or a signal that orders them, or alternate two buffers by comms.epoch}}
    comms.tile_store %one, %there[%at] : tensor<16xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c1 of %world : !comms.signal<1>
  } else {
    %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
    %here = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
    // expected-note @below {{the read}}
    %v = comms.tile_load %here[%at] after %t : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %v, %y[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.return
}

// -----

// The same by a mask.

comms.kernel @by_a_mask(%x: !comms.window<64xf32>, %s: !comms.signal<1>, %y: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %world = comms.team world
  %me = comms.rank %world
  %sends = arith.cmpi eq, %me, %c0 : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %c3 = arith.constant 3 : i64
  %next = arith.addi %launch, %c3 : i64
  %low = arith.andi %next, %c3 : i64
  %turn = arith.index_cast %low : i64 to index
  %at = arith.muli %turn, %c16 : index
  scf.if %sends {
    %there = comms.peer %x at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-error @below {{'comms.tile_store' op writes [0, 16) of 'x' at rank 1 on rank 0 block 0 in launch 5, with no order between it and the read by rank 1 block 0 in launch 1}}
    // expected-note @below {{let the earlier launch end in a barrier or a signal that orders them, or alternate two buffers by comms.epoch}}
    comms.tile_store %one, %there[%at] : tensor<16xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c1 of %world : !comms.signal<1>
  } else {
    %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
    %here = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
    // expected-note @below {{the read}}
    %v = comms.tile_load %here[%at] after %t : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %v, %y[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.return
}

// -----

// A barrier that ends each launch.

comms.kernel @ends(%x: !comms.window<64xf32>, %s: !comms.signal<1>, %y: memref<64xf32>)
    attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %world = comms.team world
  %me = comms.rank %world
  %sends = arith.cmpi eq, %me, %c0 : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %c4 = arith.constant 4 : index
  %turn = arith.remui %epoch, %c4 : index
  %at = arith.muli %turn, %c16 : index
  scf.if %sends {
    %there = comms.peer %x at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
    comms.tile_store %one, %there[%at] : tensor<16xf32>, memref<64xf32>
    comms.signal inc %s[%c0] at %c1 of %world : !comms.signal<1>
  } else {
    %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
    %here = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
    %v = comms.tile_load %here[%at] after %t : memref<64xf32> -> tensor<16xf32>
    comms.tile_store %v, %y[%c0] : tensor<16xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}
