// RUN: comms-opt %s -comms-distribute-tiles="threads=64" -split-input-file -verify-diagnostics

// What each thread has for itself is no place for a tile.
comms.kernel @stores() {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %own = memref.alloca() : memref<4xi32>
  // expected-error @+1 {{stores from a block of many threads, where each has this memory for itself or its elements are no row of numbers: use comms.tile_store of a tile of one element, which one thread stores}}
  memref.store %one, %own[%c0] : memref<4xi32>
  comms.return
}

// -----

comms.kernel @numbers(%x: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is a tile of different numbers, which threads cannot share yet: load it from memory, or compute it from comms.iota}}
  %t = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  comms.tile_store %t, %x[%c0] : tensor<4xi32>, memref<4xi32>
  comms.return
}
