// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The reader looks for packets of 8 bytes where lines are stored.

comms.kernel @other_packets(%p: !comms.window<72xi64>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %tile = comms.iota : tensor<32xf32>
  comms.for_peers %team as %peer {
    %there = comms.peer %p at %peer of %team : !comms.window<72xi64> -> memref<72xi64>
    comms.packet_store %tile, %there[%c0] flag %flag assumes store128_whole : tensor<32xf32>, memref<72xi64>
  }
  %here = comms.local %p : !comms.window<72xi64> -> memref<72xi64>
  // expected-error @below {{deadlock: rank 0, block 0 waits for packets with flag 1 at p[0] (launch 1)}}
  // expected-note @below {{the flag there is 1}}
  // expected-note @below {{rank 1, block 0 waits here, for packets with flag 1 at p[0] (launch 1)}}
  // expected-note @below {{the store must go to this rank's part, at the same offset, with the same flag and at least as many elements}}
  %got = comms.packet_load %here[%c0] flag %flag : memref<72xi64> -> tensor<32xf32>
  comms.barrier %team block
  comms.return
}

// -----

// A slot that begins within a line.

comms.kernel @within_a_line(%p: !comms.window<72xi64>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %parity = arith.remui %epoch, %c2 : index
  %at = arith.muli %parity, %c8 : index
  %tile = comms.iota : tensor<32xf32>
  comms.for_peers %team as %peer {
    %there = comms.peer %p at %peer of %team : !comms.window<72xi64> -> memref<72xi64>
    // expected-error @below {{'comms.packet_store' op begins at 8 on rank 0 block 0 in launch 1, which is not the first of a line}}
    // expected-note @below {{use a multiple of 16}}
    comms.packet_store %tile, %there[%at] flag %flag assumes store128_whole : tensor<32xf32>, memref<72xi64>
  }
  comms.barrier %team block
  comms.return
}

// -----

// Behind 64 i64 of four lines lie their rests.

comms.kernel @into_the_rests(%p: !comms.window<72xi64>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c64 = arith.constant 64 : index
  %team = comms.team world
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %at = arith.muli %epoch, %c64 : index
  %tile = comms.iota : tensor<32xf32>
  comms.for_peers %team as %peer {
    %there = comms.peer %p at %peer of %team : !comms.window<72xi64> -> memref<72xi64>
    // expected-error @below {{'comms.packet_store' op writes elements [64, 80) of 'p', which has 64, on rank 0 block 0 in launch 1}}
    // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
    comms.packet_store %tile, %there[%at] flag %flag assumes store128_whole : tensor<32xf32>, memref<72xi64>
  }
  comms.barrier %team block
  comms.return
}

// -----

// One buffer: the reader may still look at the first launch's lines.

comms.kernel @one_buffer(%p: !comms.window<36xi64>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %tile = comms.iota : tensor<32xf32>
  comms.for_peers %team as %peer {
    %there = comms.peer %p at %peer of %team : !comms.window<36xi64> -> memref<36xi64>
    // expected-error @below {{'comms.packet_store' op overwrites [0, 16) of 'p' at rank 1 on rank 0 block 0 in launch 2 before rank 1 block 0 has surely read it in launch 1}}
    // expected-note @below {{alternate buffers by comms.epoch, or let the reader answer before the next launch}}
    comms.packet_store %tile, %there[%c0] flag %flag assumes store128_whole : tensor<32xf32>, memref<36xi64>
  }
  %here = comms.local %p : !comms.window<36xi64> -> memref<36xi64>
  // expected-note @below {{the read}}
  %got = comms.packet_load %here[%c0] flag %flag assumes store128_whole : memref<36xi64> -> tensor<32xf32>
  comms.return
}
