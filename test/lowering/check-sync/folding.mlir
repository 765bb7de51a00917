// Blocks that do the same are followed as one. What several touch keeps them together: then a world of this size is
// not followed whole.
// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics | FileCheck %s

// All blocks do the same.
// CHECK-LABEL: @good
// CHECK-SAME: block_classes = 1 {{.*}}verdict = "proven"
comms.kernel @good(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
  }
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// The first seven in another region.
// CHECK-LABEL: @roles_good
// CHECK-SAME: block_classes = 2 {{.*}}verdict = "proven"
comms.kernel @roles_good(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %is = arith.cmpi ult, %b, %c7 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    scf.if %is {
      comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
    } else {
      comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
    }
  }
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// Sixteen blocks side by side, and so on.
// CHECK-LABEL: @rem_good
// CHECK-SAME: block_classes = 8 {{.*}}verdict = "proven"
comms.kernel @rem_good(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %r = arith.remui %b, %c16 : index
  %d = arith.divui %b, %c16 : index
  %r2 = arith.muli %r, %c64 : index
  %d2 = arith.muli %d, %c16 : index
  %d3 = arith.muli %d2, %c64 : index
  %at2 = arith.addi %r2, %d3 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at2] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at2] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
  }
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// One block forgets a signal, and deadlocks whatever the others do.
comms.kernel @skip7(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %is = arith.cmpi eq, %b, %c7 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    %is0 = arith.cmpi eq, %p, %c0 : index
    %f = arith.andi %is, %is0 : i1
    scf.if %f {
    } else {
      comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
    }
  }
  // expected-error-re @below {{{{rank 0,? block 7.*'s'?\[7\]|s\[7\]}}}}
  // expected-note-re @below {{{{.*}}}}
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// All blocks write what others may still read.
comms.kernel @unanswered(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  // expected-error @below {{writes [0, 64) of 'w' at rank 0 on rank 0 block 0 in launch 2}}
  // expected-note @below {{let the earlier launch end in a barrier}}
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    // expected-note @below {{the read}}
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  comms.return
}

// -----

// All blocks read what block 0 stores.
// CHECK-LABEL: @fixedread
// CHECK-SAME: verdict = "not decided"
// expected-remark @below {{follows all blocks of a rank together: several blocks touch 'w'}}
// expected-warning @below {{did not check this kernel}}
comms.kernel @fixedread(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%c0] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
  }
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// They count on one cell.
// CHECK-LABEL: @onecell
// CHECK-SAME: verdict = "not decided"
// expected-remark @below {{follows all blocks of a rank together: several blocks touch 's'}}
// expected-warning @below {{did not check this kernel}}
comms.kernel @onecell(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1024>
  }
  %t = comms.wait_signal %s[%c0] ge %value : !comms.signal<1024>
  comms.return
}

// -----

// Each stores one element of the next.
// CHECK-LABEL: @len65
// CHECK-SAME: verdict = "not decided"
// expected-remark @below {{follows all blocks of a rank together: several blocks touch 'w'}}
// expected-warning @below {{did not check this kernel}}
comms.kernel @len65(%x: memref<262144xf32>, %w: !comms.window<262144xf32>,
    %y: memref<262144xf32>, %s: !comms.signal<1024>) attributes {ranks = 64, blocks = 128} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %b = comms.block_id
  %nb = comms.num_blocks
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %at = arith.muli %b, %c64 : index
  %own = comms.local %w : !comms.window<262144xf32> -> memref<262144xf32>
  %mine = comms.tile_load %x[%at] : memref<262144xf32> -> tensor<65xf32>
  comms.tile_store %mine, %own[%at] : tensor<65xf32>, memref<262144xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<262144xf32> -> memref<262144xf32>
    %t = comms.tile_load %part[%at] : memref<262144xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%at] : tensor<64xf32>, memref<262144xf32>
  }
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%b] at %p of %world : !comms.signal<1024>
  }
  %t = comms.wait_signal %s[%b] ge %value : !comms.signal<1024>
  comms.return
}
