// RUN: comms-opt %s -comms-assert-bounds | FileCheck %s
// RUN: comms-opt %s -comms-lower-channels -canonicalize -cse -comms-assert-bounds | FileCheck %s

// None of these needs a check at run time.
// CHECK-NOT: comms.check_bounds

// A tail: the offset cancels in offset + (1000 - offset).
// CHECK: comms.kernel @tail(
// CHECK-NOT: comms.check_bounds
comms.kernel @tail(%x: memref<1000xf32>) {
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  %b = comms.block_id
  %n = comms.num_blocks
  scf.for %t = %b to %c4 step %n {
    %off = arith.muli %t, %c256 : index
    %left = arith.subi %c1000, %off : index
    %valid = arith.minsi %left, %c256 : index
    %a = comms.tile_load %x[%off] valid %valid : memref<1000xf32> -> tensor<256xf32>
    comms.tile_store %a, %x[%off] valid %valid : tensor<256xf32>, memref<1000xf32>
  }
  comms.return
}

// The same in a part that a rank found at run time owns.
// CHECK: comms.kernel @tail_of_part(
// CHECK-NOT: comms.check_bounds
comms.kernel @tail_of_part(%x: memref<8x1000xf32>) attributes {ranks = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  %team = comms.team world
  %rank = comms.rank %team
  scf.for %i = %c0 to %c8 step %c1 {
    %sum = arith.addi %rank, %i : index
    %peer = arith.remui %sum, %c8 : index
    %start = arith.muli %peer, %c1000 : index
    scf.for %t = %c0 to %c4 step %c1 {
      %off = arith.muli %t, %c256 : index
      %at = arith.addi %start, %off : index
      %left = arith.subi %c1000, %off : index
      %valid = arith.minsi %c256, %left : index
      %a = comms.tile_load %x[%at] valid %valid : memref<8x1000xf32> -> tensor<256xf32>
      comms.tile_store %a, %x[%at] valid %valid : tensor<256xf32>, memref<8x1000xf32>
    }
  }
  comms.return
}

// Counters are multiples of their step.
// CHECK: comms.kernel @strided(
// CHECK-NOT: comms.check_bounds
comms.kernel @strided(%x: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c1024 = arith.constant 1024 : index
  %b = comms.block_id
  %first = arith.muli %b, %c256 : index
  scf.for %off = %first to %c1024 step %c256 {
    %a = comms.tile_load %x[%off] : memref<1024xf32> -> tensor<256xf32>
    comms.tile_store %a, %x[%off] : tensor<256xf32>, memref<1024xf32>
  }
  comms.return
}

// A condition around the access.
// CHECK: comms.kernel @guarded(
// CHECK-NOT: comms.check_bounds
comms.kernel @guarded(%x: memref<100xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c4 = arith.constant 4 : index
  %b = comms.block_id
  %n = comms.num_blocks
  scf.for %r = %c0 to %c4 step %c1 {
    %skip = arith.muli %r, %n : index
    %t = arith.addi %b, %skip : index
    %exists = arith.cmpi slt, %t, %c10 : index
    scf.if %exists {
      %off = arith.muli %t, %c10 : index
      %a = comms.tile_load %x[%off] : memref<100xf32> -> tensor<10xf32>
      comms.tile_store %a, %x[%off] : tensor<10xf32>, memref<100xf32>
    }
  }
  %low = arith.cmpi sge, %i, %c0 : index
  %high = arith.cmpi sgt, %i, %c10 : index
  scf.if %low {
    scf.if %high {
    } else {
      %a = comms.tile_load %x[%i] : memref<100xf32> -> tensor<90xf32>
      comms.tile_store %a, %x[%i] : tensor<90xf32>, memref<100xf32>
    }
  }
  comms.return
}

// A loop whose bound is the extent of a tile.
// CHECK: comms.kernel @nested(
// CHECK-NOT: comms.check_bounds
comms.kernel @nested(%x: memref<1000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %off = arith.muli %t, %c256 : index
    %left = arith.subi %c1000, %off : index
    %valid = arith.minsi %left, %c256 : index
    scf.for %j = %c0 to %valid step %c1 {
      %at = arith.addi %off, %j : index
      %a = comms.tile_load %x[%at] : memref<1000xf32> -> tensor<1xf32>
      comms.tile_store %a, %x[%at] : tensor<1xf32>, memref<1000xf32>
    }
  }
  comms.return
}

// Slots of channels, for every protocol and pattern, and a signal of each peer.
// CHECK: comms.kernel @channels(
// CHECK-NOT: comms.check_bounds
comms.kernel @channels(%x: memref<500xf32>, %s: !comms.signal<8>) attributes {ranks = 8 : i64, lsa_size = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c500 = arith.constant 500 : index
  %team = comms.team lsa
  %pull = comms.channel 0 pairwise over %team slots 8 : !comms.channel<pull, 64xf32>
  %ll = comms.channel 1 multicast over %team slots 8 : !comms.channel<ll, 64xf32>
  %lamport = comms.channel 2 multicast over %team slots 8 : !comms.channel<lamport, 64xf32>
  %single = comms.channel 3 single over %team slots 8 : !comms.channel<ll, 64xf32>
  %b = comms.block_id
  %n = comms.num_blocks
  scf.for %t = %b to %c8 step %n {
    %off = arith.muli %t, %c64 : index
    %left = arith.subi %c500, %off : index
    %valid = arith.minsi %left, %c64 : index
    %a = comms.tile_load %x[%off] valid %valid : memref<500xf32> -> tensor<64xf32>
    comms.send %a on %ll[%t] valid %valid : tensor<64xf32>, !comms.channel<ll, 64xf32>
    comms.send %a on %lamport[%t] valid %valid : tensor<64xf32>, !comms.channel<lamport, 64xf32>
    comms.send %a on %single[%t] to %c1 valid %valid : tensor<64xf32>, !comms.channel<ll, 64xf32>
    scf.for %p = %c0 to %c4 step %c1 {
      comms.send %a on %pull[%t] to %p valid %valid : tensor<64xf32>, !comms.channel<pull, 64xf32>
    }
    comms.for_peers %team as %p {
      comms.signal inc %s[%p] at %p of %team : !comms.signal<8>
    }
    comms.channel_barrier %pull : !comms.channel<pull, 64xf32>
    scf.for %p = %c0 to %c4 step %c1 {
      %d = comms.recv %pull[%t] from %p valid %valid : !comms.channel<pull, 64xf32> -> tensor<64xf32>
      %e = comms.recv %ll[%t] from %p valid %valid : !comms.channel<ll, 64xf32> -> tensor<64xf32>
      %f = comms.recv %lamport[%t] from %p valid %valid : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
      %g = comms.recv %single[%t] from %p valid %valid : !comms.channel<ll, 64xf32> -> tensor<64xf32>
      %h = arith.addf %d, %e : tensor<64xf32>
      %i = arith.addf %f, %g : tensor<64xf32>
      comms.tile_store %h, %x[%off] valid %valid : tensor<64xf32>, memref<500xf32>
      comms.tile_store %i, %x[%off] valid %valid : tensor<64xf32>, memref<500xf32>
    }
  }
  comms.return
}
