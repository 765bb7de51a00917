// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Peers write into a window that the host of each rank reads between launches (comms.host).

comms.kernel @written_too_early(%y: !comms.window<64xf32> {comms.host}) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  comms.for_peers %world as %peer {
    %part = comms.peer %y at %peer of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-error @below {{writes [0, 64) of 'y' at rank 1 on rank 0 block 0 in launch 2, where that rank may not have begun launch 2: its host may still use it}}
    // expected-note @below {{wait for that rank first: a comms.barrier before the first access to what its host uses}}
    comms.tile_store %tile, %part[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @not_waited_for(%y: !comms.window<64xf32> {comms.host}) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %peer {
    %part = comms.peer %y at %peer of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-error @below {{writes 'y' at rank 0 in launch 1 on rank 1 block 0, which that rank does not wait for before it ends the launch: its host may use it too early}}
    // expected-note @below {{end the kernel with a comms.barrier behind the accesses to what its host uses}}
    comms.tile_store %tile, %part[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
}

// -----

// Between two barriers.

comms.kernel @between(%y: !comms.window<64xf32> {comms.host}) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %peer {
    %part = comms.peer %y at %peer of %world : !comms.window<64xf32> -> memref<64xf32>
    comms.tile_store %tile, %part[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}
