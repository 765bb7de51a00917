// RUN: comms-opt %s -comms-unroll-ranks -canonicalize -split-input-file > %t
// RUN: FileCheck %s < %t
// RUN: comms-opt %s -comms-unroll-ranks=limit=3 -canonicalize -split-input-file | FileCheck %s --check-prefix=LESS

// A fold over four ranks is a straight line; its branch on a constant is taken.
// CHECK-LABEL: comms.kernel @fold
// CHECK-NOT:     scf.
// CHECK-COUNT-3: comms.tile_load
// CHECK-NOT:     comms.tile_load
// CHECK:         comms.return
// LESS-LABEL:  comms.kernel @fold
// LESS:          scf.for
comms.kernel @fold(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %team = comms.team world
  %sum = scf.for %p = %c0 to %c4 step %c1 iter_args(%before = %zero) -> tensor<64xf32> {
    %other = arith.cmpi ne, %p, %c1 : index
    %after = scf.if %other -> tensor<64xf32> {
      %part = comms.peer %w at %p of %team : !comms.window<64xf32> -> memref<64xf32>
      %t = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
      %s = arith.addf %before, %t : tensor<64xf32>
      scf.yield %s : tensor<64xf32>
    } else {
      scf.yield %before : tensor<64xf32>
    }
    scf.yield %after : tensor<64xf32>
  }
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Many iterations stay a loop, and so does what handles no tiles.
// CHECK-LABEL: comms.kernel @kept
// CHECK:         scf.for %{{.*}} = %c0 to %c17
// CHECK:         scf.for %{{.*}} = %c0 to %c4
comms.kernel @kept(%x: memref<17x64xf32>, %s: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c17 = arith.constant 17 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  scf.for %i = %c0 to %c17 step %c1 {
    %at = arith.muli %i, %c64 : index
    comms.tile_store %one, %x[%at] : tensor<64xf32>, memref<17x64xf32>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    comms.reset_signal %s[%i] : !comms.signal<4>
  }
  comms.return
}

// -----

// A fill that nobody waits for goes behind what follows, up to where this block meets others.
// CHECK-LABEL: comms.kernel @fills
// CHECK:         comms.poison_load
// CHECK:         comms.poison_load
// CHECK:         comms.tile_store
// CHECK-NEXT:    comms.poison_fill %{{.*}}[%a] count %c64 {comms.stale}
// CHECK-NEXT:    comms.poison_fill %{{.*}}[%b] count %c64 {comms.stale}
// CHECK-NEXT:    comms.barrier
// CHECK-NEXT:    comms.poison_fill %{{.*}}[%c] count %c64 :
// CHECK-NEXT:    comms.tile_load
comms.kernel @fills(%w: !comms.window<1024xf32>, %y: memref<64xf32>, %a: index, %b: index, %c: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %team = comms.team world
  %own = comms.local %w : !comms.window<1024xf32> -> memref<1024xf32>
  comms.poison_fill %own[%a] count %c64 {comms.stale} : memref<1024xf32>
  %t = comms.poison_load %own[%b] : memref<1024xf32> -> tensor<64xf32>
  comms.poison_fill %own[%b] count %c64 {comms.stale} : memref<1024xf32>
  %u = comms.poison_load %own[%c] : memref<1024xf32> -> tensor<64xf32>
  %s = arith.addf %t, %u : tensor<64xf32>
  comms.tile_store %s, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %team block
  comms.poison_fill %own[%c] count %c64 : memref<1024xf32>
  %v = comms.tile_load %y[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %v, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Loops that count in more than 64 bits are not counted in 64: this one would have none, or no end.
// CHECK-LABEL: comms.kernel @wide
// CHECK:         scf.for
comms.kernel @wide(%y: memref<8xi32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1> : tensor<8xi32>
  %a = arith.constant 0 : i128
  %b = arith.constant 18446744073709551620 : i128
  %s = arith.constant 1 : i128
  scf.for %i = %a to %b step %s : i128 {
    %t = comms.tile_load %y[%c0] : memref<8xi32> -> tensor<8xi32>
    %u = arith.addi %t, %one : tensor<8xi32>
    comms.tile_store %u, %y[%c0] : tensor<8xi32>, memref<8xi32>
  }
  comms.return
}

// -----

// Products stay in their loop, next to tiles and views of peers: each copy is thousands of instructions.
// CHECK-LABEL: comms.kernel @products
// CHECK:         scf.for
// CHECK:           comms.peer
// CHECK:           comms.contract
// CHECK-NOT:       comms.contract
// CHECK:         comms.for_peers
// CHECK:           comms.contract
// CHECK-NOT:       comms.contract
// CHECK:         scf.for
// CHECK:           comms.contract
// CHECK-NOT:       comms.contract
comms.kernel @products(%x: memref<64x16xbf16>, %w: memref<16x16xbf16>, %b: !comms.window<64x16xf32>, %y: memref<64x16xf32>)
    attributes {ranks = 4 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  scf.for %p = %c0 to %c4 step %c1 {
    %row = arith.muli %p, %c16 : index
    %box = comms.peer %b at %p of %team : !comms.window<64x16xf32> -> memref<64x16xf32>
    comms.contract %x[%row, %c0], %w[%c0, %c0] to %box[%row, %c0] tile [16, 16] depth %c16
      : memref<64x16xbf16>, memref<16x16xbf16>, memref<64x16xf32>
  }
  comms.for_peers %team as %p {
    %row = arith.muli %p, %c16 : index
    %box = comms.peer %b at %p of %team : !comms.window<64x16xf32> -> memref<64x16xf32>
    comms.contract %x[%row, %c0], %w[%c0, %c0] to %box[%row, %c0] tile [16, 16] depth %c16
      : memref<64x16xbf16>, memref<16x16xbf16>, memref<64x16xf32>
  }
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c16 : index
  %step = arith.muli %blocks, %c16 : index
  scf.for %i = %first to %c64 step %step {
    comms.contract %x[%i, %c0], %w[%c0, %c0] to %y[%i, %c0] tile [16, 16] depth %c16
      : memref<64x16xbf16>, memref<16x16xbf16>, memref<64x16xf32>
    %at = arith.muli %i, %c16 : index
    comms.tile_store %one, %y[%at] : tensor<16xf32>, memref<64x16xf32>
  }
  comms.return
}
