// Worlds that are too large to follow whole, and options out of range.
// RUN: comms-opt %s -comms-check-sync=max-events=20000 -split-input-file -verify-diagnostics -o %t

// A channel program: some ranks are followed, the others taken at their word.
// expected-remark @below {{comms-check-sync followed 4 of 64 ranks, and compared neither accesses to memory nor one launch with the next: all of them take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @channels() attributes {ranks = 64 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %ch = comms.channel 0 multicast over %world slots 1 : !comms.channel<ll, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  comms.send %tile on %ch[%c0] : tensor<8xf32>, !comms.channel<ll, 8xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 8xf32>
  comms.for_peers %world as %p {
    %got = comms.recv %ch[%c0] from %p : !comms.channel<ll, 8xf32> -> tensor<8xf32>
  }
  comms.return
}

// -----

// What is wrong on those that are followed is still found.
// expected-remark @below {{comms-check-sync followed 4 of 64 ranks, and compared neither accesses to memory nor one launch with the next: all of them take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @channels_wrong() attributes {ranks = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %ch = comms.channel 0 multicast over %world slots 2 : !comms.channel<ll, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  comms.send %tile on %ch[%c0] : tensor<8xf32>, !comms.channel<ll, 8xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 8xf32>
  comms.for_peers %world as %p {
    // expected-error @below {{deadlock: rank 0, block 0 waits for rank 1 to send slot 1 (launch 1)}}
    // expected-note @below {{rank 1 has sent slot 0 of this channel in this launch}}
    // expected-note @below {{rank 1, block 0 waits here, for rank 2 to send slot 1 (launch 1)}}
    // expected-note @below {{rank 2, block 0 waits here too, for rank 63 to send slot 1 (launch 1)}}
    // expected-note @below {{rank 63, block 0 waits here too, for rank 0 to send slot 1 (launch 1)}}
    // expected-note @below {{the source must send through the same slot and channel, from the same block, in the same launch}}
    %got = comms.recv %ch[%c1] from %p : !comms.channel<ll, 8xf32> -> tensor<8xf32>
  }
  comms.return
}

// -----

// Signals are counted, so that no rank can be left out: a smaller world.
// expected-remark @below {{comms-check-sync followed the kernel with 16 ranks instead of 64, which take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @signals(%s: !comms.signal<1>) attributes {ranks = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %peers = arith.subi %n, %c1 : index
  %epoch = comms.epoch
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
  }
  %t = comms.wait_signal %s[%c0] ge %value : !comms.signal<1>
  comms.return
}

// -----

// Made for its own number of ranks: a smaller world says nothing.
// expected-warning @below {{comms-check-sync did not check this kernel: following it takes more than 20000 events; raise the option max-events (comms-run: --check-events; Python: check_events=), or check it with fewer ranks}}
comms.kernel @fixed(%s: !comms.signal<1>) attributes {ranks = 64 : i64} {
  %c0 = arith.constant 0 : index
  %peers = arith.constant 63 : index
  %world = comms.team world
  %epoch = comms.epoch
  %want = arith.muli %epoch, %peers : index
  %value = arith.index_cast %want : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
  }
  %t = comms.wait_signal %s[%c0] ge %value : !comms.signal<1>
  comms.return
}

// -----

// A loop that would run forever.
// expected-warning @below {{comms-check-sync did not check this kernel: following it takes more than 20000 events; raise the option max-events (comms-run: --check-events; Python: check_events=), or check it with fewer ranks}}
comms.kernel @endless(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<8xf32>
    scf.yield
  }
  comms.return
}

// -----

// Ranks that meet in barriers of all of them alone say all about one another: memory is compared, too.
// expected-remark @below {{comms-check-sync followed 4 of 64 ranks, and compared accesses to memory of these alone: all of them take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @reads_late(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 64 : i64, blocks = 1} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %world = comms.team world
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @below {{'comms.tile_store' op writes [0, 64) of 'w' at rank 0 on rank 0 block 0 in launch 2, with no order between it and the read by rank 63 block 0 in launch 1}}
  // expected-note @below {{let the earlier launch end in a barrier or a signal that orders them, or alternate two buffers by comms.epoch}}
  comms.tile_store %one, %own[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<64xf32> -> memref<64xf32>
    // expected-note @below {{the read}}
    %t = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
}

// -----

// expected-remark @below {{comms-check-sync followed 4 of 64 ranks, and compared accesses to memory of these alone: all of them take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @reads_in_time(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 64 : i64, blocks = 1} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %world = comms.team world
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  comms.tile_store %one, %own[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<64xf32> -> memref<64xf32>
    %t = comms.tile_load %part[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// Sixteen buffers take too many launches for all ranks, which are followed in fewer.
// expected-remark @below {{comms-check-sync followed 3 launches, in which what comms.epoch chooses between is not all used again: 17 take more than 20000 events (option max-events; comms-run: --check-events)}}
comms.kernel @sixteen_buffers(%w: !comms.window<2048xf32>, %y: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c15 = arith.constant 15 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %low = arith.andi %epoch, %c15 : index
  %number = arith.index_cast %low : index to i64
  %tile = comms.splat %number : i64 -> tensor<1xi64>
  comms.tile_store %tile, %y[%c0] : tensor<1xi64>, memref<1xi64>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %base = arith.muli %me, %c512 : index
  %none = arith.muli %low, %c0 : index
  %from = arith.addi %base, %none : index
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<2048xf32> -> memref<2048xf32>
    scf.for %i = %c0 to %c256 step %c8 {
      %at = arith.addi %from, %i : index
      comms.tile_store %zero, %part[%at] : tensor<8xf32>, memref<2048xf32>
    }
  }
  comms.barrier %world block
  comms.return
}

// -----

// So many buffers there are not: it is a flag.
comms.kernel @flag(%w: !comms.window<2048xf32>, %y: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c255 = arith.constant 255 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %low = arith.andi %epoch, %c255 : index
  %number = arith.index_cast %low : index to i64
  %tile = comms.splat %number : i64 -> tensor<1xi64>
  comms.tile_store %tile, %y[%c0] : tensor<1xi64>, memref<1xi64>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %base = arith.muli %me, %c512 : index
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<2048xf32> -> memref<2048xf32>
    scf.for %i = %c0 to %c256 step %c8 {
      %at = arith.addi %base, %i : index
      comms.tile_store %zero, %part[%at] : tensor<8xf32>, memref<2048xf32>
    }
  }
  comms.barrier %world block
  comms.return
}
