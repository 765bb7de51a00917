// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The poison is not put back: two launches later the old tile is taken for the new.

comms.kernel @not_cleared(%w: !comms.window<128xf32> {comms.hidden, comms.init = "poison"})
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %epoch = comms.epoch
  %two = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %parity = arith.remui %epoch, %two : index
  %at = arith.muli %parity, %c64 : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %right of %world : !comms.window<128xf32> -> memref<128xf32>
  // expected-error @below {{'comms.poison_store' op writes to [64, 128) of 'w' at rank 1 on rank 0 block 0 in launch 3, which still holds the tile of launch 1: a reader would take the old one for the new}}
  // expected-note @below {{the earlier store}}
  // expected-note @below {{let the reader clear it with comms.poison_fill before it is used again}}
  comms.poison_store %tile, %there[%at] : tensor<64xf32>, memref<128xf32>
  %here = comms.local %w : !comms.window<128xf32> -> memref<128xf32>
  %got = comms.poison_load %here[%at] : memref<128xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// The reader clears what it has read.

comms.kernel @cleared(%w: !comms.window<128xf32> {comms.hidden, comms.init = "poison"})
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %epoch = comms.epoch
  %two = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %parity = arith.remui %epoch, %two : index
  %at = arith.muli %parity, %c64 : index
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %right of %world : !comms.window<128xf32> -> memref<128xf32>
  comms.poison_store %tile, %there[%at] : tensor<64xf32>, memref<128xf32>
  %here = comms.local %w : !comms.window<128xf32> -> memref<128xf32>
  %got = comms.poison_load %here[%at] : memref<128xf32> -> tensor<64xf32>
  comms.poison_fill %here[%at] count %c64 : memref<128xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Nobody has put poison there before the first launch: memory that holds anything else looks like a tile that has come.

comms.kernel @never_filled(%w: !comms.window<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %peer {
    %there = comms.peer %w at %peer of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-note @below {{the store that it should wait for}}
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  // expected-error @below {{'comms.poison_load' op may be met on rank 0 block 0 in launch 1 by what was there before rank 1 block 0 overwrote it}}
  // expected-note @below {{fill it with poison first, comms.poison_fill, and let a barrier follow}}
  %got = comms.poison_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.poison_fill %here[%c0] count %c64 : memref<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @filled(%w: !comms.window<64xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  comms.poison_fill %here[%c0] count %c64 : memref<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %peer {
    %there = comms.peer %w at %peer of %world : !comms.window<64xf32> -> memref<64xf32>
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %got = comms.poison_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
