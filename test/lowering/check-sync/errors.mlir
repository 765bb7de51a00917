// Errors that need no story.
// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

comms.kernel @cell(%s: !comms.signal<2>) attributes {ranks = 2 : i64} {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %n = comms.num_blocks
  %at = arith.addi %n, %c2 : index
  // expected-error @below {{'comms.signal' op uses cell 4 of 's', which has 2, on rank 0 block 0 in launch 1}}
  // expected-note @below {{make the array larger or the index smaller}}
  comms.signal inc %s[%at] at %c0 of %world : !comms.signal<2>
  comms.return
}

// -----

comms.kernel @slot() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %rank = comms.rank %world
  %epoch = comms.epoch
  // expected-note @below {{the channel}}
  %ch = comms.channel 0 multicast over %world slots 3 : !comms.channel<pull, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-error @below {{'comms.send' op uses slot 3 of a channel with 3, on rank 0 block 0 in launch 3}}
  // expected-note @below {{slots are 0 to 2}}
  comms.send %tile on %ch[%epoch] : tensor<8xf32>, !comms.channel<pull, 8xf32>
  comms.channel_barrier %ch : !comms.channel<pull, 8xf32>
  comms.for_peers %world as %p {
    %got = comms.recv %ch[%epoch] from %p : !comms.channel<pull, 8xf32> -> tensor<8xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @valid() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %world = comms.team world
  %epoch = comms.epoch
  %count = arith.muli %c8, %epoch : index
  %ch = comms.channel 0 multicast over %world slots 3 : !comms.channel<pull, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-error @below {{'comms.send' op says that 16 elements are valid of a tile of 8, on rank 0 block 0 in launch 2}}
  // expected-note @below {{clamp it: arith.minsi and arith.maxsi with the tile's length and 0}}
  comms.send %tile on %ch[%c0] valid %count : tensor<8xf32>, !comms.channel<pull, 8xf32>
  comms.channel_barrier %ch : !comms.channel<pull, 8xf32>
  comms.for_peers %world as %p {
    %got = comms.recv %ch[%c0] from %p valid %count : !comms.channel<pull, 8xf32> -> tensor<8xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @valid_differs() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %rank = comms.rank %world
  %mine = arith.addi %rank, %c1 : index
  %ch = comms.channel 0 multicast over %world slots 3 : !comms.channel<pull, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-note @below {{the send}}
  comms.send %tile on %ch[%c0] valid %mine : tensor<8xf32>, !comms.channel<pull, 8xf32>
  comms.channel_barrier %ch : !comms.channel<pull, 8xf32>
  comms.for_peers %world as %p {
    // expected-error @below {{'comms.recv' op expects 2 elements in slot 0 on rank 1 block 0, but rank 0 block 0 sends 1}}
    // expected-note @below {{`valid` must be the same on both sides}}
    %got = comms.recv %ch[%c0] from %p valid %mine : !comms.channel<pull, 8xf32> -> tensor<8xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @other_block() attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %b = comms.block_id
  %other = arith.subi %c1, %b : index
  %ch = comms.channel 0 multicast over %world slots 2 : !comms.channel<ll, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-note @below {{the send}}
  comms.send %tile on %ch[%b] : tensor<8xf32>, !comms.channel<ll, 8xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 8xf32>
  comms.for_peers %world as %p {
    // expected-error @below {{'comms.recv' op receives slot 1 on rank 1 block 0, which rank 0 block 1 sent}}
    // expected-note @below {{block b receives only from block b: share the tiles among blocks in the same way on both sides}}
    %got = comms.recv %ch[%other] from %p : !comms.channel<ll, 8xf32> -> tensor<8xf32>
  }
  comms.barrier %world grid
  comms.return
}

// -----

comms.kernel @step(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %rank = comms.rank %world
  // expected-error @below {{'scf.for' op has step 0: the step of a loop must be positive}}
  scf.for %i = %c0 to %c64 step %rank {
    %t = comms.tile_load %x[%i] : memref<64xf32> -> tensor<1xf32>
  }
  comms.return
}

// -----

comms.kernel @spins(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  scf.while : () -> () {
    // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] to change (launch 1)}}
    // expected-note @below {{rank 1, block 0 waits here}}
    // expected-note @below {{the wait is cyclic}}
    %now = comms.read_signal %s[%c0] : !comms.signal<1>
    %less = arith.cmpi slt, %now, %one : i64
    scf.condition(%less)
  } do {
    scf.yield
  }
  comms.return
}

// -----

comms.kernel @unknown_value(%s: !comms.signal<1>, %v: i64) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{no rank has signaled it in this launch}}
  // expected-note @below {{rank 1, block 0 waits here}}
  // expected-note @below {{the wait is cyclic}}
  // expected-note @below {{seen with 1 for every integer of data and every scalar}}
  %t = comms.wait_signal %s[%c0] ge %v : !comms.signal<1>
  comms.return
}

// -----

comms.kernel @whole(%x: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64} {
  %world = comms.team world
  // expected-error @below {{'comms.all_reduce' op is a whole collective: run comms-expand-collectives before comms-check-sync}}
  comms.all_reduce sum %world ins(%x : !comms.window<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

comms.kernel @flag_zero(%p: !comms.window<8xi64>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %here = comms.local %p : !comms.window<8xi64> -> memref<8xi64>
  // expected-error @below {{'comms.packet_load' op waits for flag 0 on rank 0 block 0 in launch 1, which memory holds before anything is stored}}
  // expected-note @below {{begin with flag 1: comms.epoch does}}
  %got = comms.packet_load %here[%c0] flag %zero : memref<8xi64> -> tensor<8xf32>
  comms.return
}

// -----

comms.kernel @too_many_packets(%p: !comms.window<8xi64>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %at = comms.epoch
  %tile = comms.iota : tensor<8xf32>
  %here = comms.local %p : !comms.window<8xi64> -> memref<8xi64>
  // expected-error @below {{'comms.packet_store' op writes elements [1, 9) of 'p', which has 8, on rank 0 block 0 in launch 1}}
  // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
  comms.packet_store %tile, %here[%at] flag %one : tensor<8xf32>, memref<8xi64>
  comms.return
}

// -----

// expected-error @below {{'comms.kernel' op has unstructured control flow (cf.br), which comms-check-sync does not follow: use scf or check the kernel before it is lowered to cf}}
comms.kernel @branches(%s: !comms.signal<1>, %go: i1) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  cf.cond_br %go, ^signal, ^end
^signal:
  comms.signal inc %s[%c0] at %c0 of %world : !comms.signal<1>
  cf.br ^end
^end:
  comms.return
}

// -----

comms.kernel @put_outside(%w: !comms.window<64xf32>, %x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %world = comms.team world
  %rank = comms.rank %world
  %at = arith.muli %rank, %c32 : index
  %count = arith.addi %at, %c32 : index
  // expected-error @below {{'comms.put' op writes elements [32, 96) of 'w', which has 64, on rank 1 block 0 in launch 1}}
  // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
  comms.put %x[%c0] to %w[%at] count %count at %c0 of %world : memref<64xf32>, !comms.window<64xf32>
  comms.return
}

// -----

comms.kernel @reset_by_another(%s: !comms.signal<1>) attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %world = comms.team world
  %b = comms.block_id
  %rank = comms.rank %world
  %peer = arith.subi %c1, %rank : index
  %first = arith.cmpi eq, %b, %c0 : index
  comms.role "waits" blocks 0 to 1 {
    // expected-note @below {{the signal, in launch 1}}
    comms.signal inc %s[%c0] at %peer of %world : !comms.signal<1>
    // expected-error @below {{deadlock: rank 1, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
    // expected-note @below {{no rank has signaled it in this launch}}
    // expected-note @below {{the wait is cyclic: rank 1 block 0 -> rank 0 block 0 -> rank 1 block 0; let each side signal or send before it waits}}
    // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
    %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  }
  comms.role "resets" blocks 1 to 2 {
    // expected-error @below {{'comms.reset_signal' op resets signal s[0] of rank 0 with no order between it and a signal of rank 1 block 0: the signal may be lost}}
    // expected-note @below {{do not reset: wait with `ge` for a value that grows with comms.epoch; or signal only after the signaling block has observed the reset}}
    comms.reset_signal %s[%c0] : !comms.signal<1>
  }
  // expected-note @below {{rank 0, block 0 waits here, for all 4 blocks of the barrier; 3 arrived (launch 1)}}
  // expected-note @below {{rank 0, block 1 and 1 more wait here as a result}}
  comms.barrier %world grid
  comms.return
}

// -----

// A reduction in memory and a read are apart.
comms.kernel @reduction_and_read(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  %all = comms.multimem %w of %world : !comms.window<64xf32> -> memref<64xf32, #comms.space<multimem>>
  // expected-error @below {{'comms.multimem_reduce' op writes [0, 64) of 'w' at rank 1 on rank 0 block 0 in launch 2, with no order between it and the read by rank 1 block 0 in launch 1}}
  // expected-note @below {{let the earlier launch end in a barrier or a signal that orders them, or alternate two buffers by comms.epoch}}
  comms.multimem_reduce sum %tile, %all[%c0] : tensor<64xf32>, memref<64xf32, #comms.space<multimem>>
  comms.fence acq_rel sys proxy alias
  comms.barrier %world block
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  // expected-note @below {{the read}}
  %sum = comms.tile_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
