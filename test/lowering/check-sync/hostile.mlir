// Huge numbers and odd shapes: an answer, in a short time, whatever it is.
// RUN: comms-opt %s -comms-check-sync=max-events=300000 -split-input-file -verify-diagnostics -o %t

comms.kernel @huge_cell(%s: !comms.signal<2147483647>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %far = arith.constant 2147483646 : index
  %big = arith.constant 9223372036854775807 : i64
  %world = comms.team world
  comms.for_peers %world as %p {
    comms.signal add %s[%far] value %big at %p of %world : !comms.signal<2147483647>
  }
  comms.barrier %world block
  comms.return
}

// -----

comms.kernel @huge_slot() attributes {ranks = 2 : i64} {
  %far = arith.constant 4294967295 : index
  %world = comms.team world
  // expected-note @below {{the channel}}
  %ch = comms.channel 0 multicast over %world slots 4294967296 : !comms.channel<ll, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-error @below {{'comms.send' op uses slot 4294967295 of a channel with 4294967296, on rank 0 block 0 in launch 1}}
  // expected-note @below {{slots are 0 to 4194303}}
  comms.send %tile on %ch[%far] : tensor<8xf32>, !comms.channel<ll, 8xf32>
  comms.return
}

// -----

comms.kernel @far_offset(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %epoch = comms.epoch
  %big = arith.constant 9223372036854775800 : index
  %at = arith.addi %big, %epoch : index
  // expected-error @below {{'comms.tile_load' op reads elements [9223372036854775801, …) of 'x', which has 64, on rank 0 block 0 in launch 1}}
  // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
  %t = comms.tile_load %x[%at] : memref<64xf32> -> tensor<8xf32>
  comms.return
}

// -----

comms.kernel @negative_offset(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %world = comms.team world
  %rank = comms.rank %world
  %c1 = arith.constant 1 : index
  %at = arith.subi %rank, %c1 : index
  // expected-error @below {{'comms.tile_load' op reads elements [-1, 7) of 'x', which has 64, on rank 0 block 0 in launch 1}}
  // expected-note @below {{shorten the last tile with `valid`, or check the loop's bounds}}
  %t = comms.tile_load %x[%at] : memref<64xf32> -> tensor<8xf32>
  comms.return
}

// -----

// The induction variable wraps around.
// expected-warning @below {{comms-check-sync did not check this kernel: following it takes more than 300000 events; raise the option max-events (comms-run: --check-events; Python: check_events=), or check it with fewer ranks}}
comms.kernel @wraps(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %most = arith.constant 9223372036854775807 : index
  %step = arith.constant 9223372036854775806 : index
  scf.for %i = %c0 to %most step %step {
    %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<8xf32>
  }
  comms.return
}

// -----

// No synchronization and no access: nothing to follow, however long it runs.
comms.kernel @idle() attributes {ranks = 1000000 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %most = arith.constant 9223372036854775807 : index
  %sum = scf.for %i = %c0 to %most step %c1 iter_args(%a = %c0) -> index {
    %b = arith.addi %a, %i : index
    scf.yield %b : index
  }
  comms.return
}

// -----

// Division by zero is unknown.
comms.kernel @by_zero(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %world = comms.team world
  %rank = comms.rank %world
  %c1 = arith.constant 1 : index
  %at = arith.divsi %c1, %rank : index
  %t = comms.tile_load %x[%at] : memref<64xf32> -> tensor<8xf32>
  comms.return
}

// -----

// Integers that no register holds.
comms.kernel @wide(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %a = arith.constant 0 : i128
  %b = arith.constant 170141183460469231731687303715884105727 : i128
  %s = arith.constant 1 : i128
  scf.for %i = %a to %b step %s : i128 {
    %t = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<8xf32>
  }
  comms.return
}

// -----

// One rank alone: no peers, every barrier passed at once.
comms.kernel @alone(%s: !comms.signal<1>) attributes {ranks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
  }
  comms.signal inc %s[%c0] at %c0 of %world : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  comms.barrier %world grid
  comms.return
}

// -----

// A loop of waits on one cell, a thousand in a launch.
comms.kernel @many(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c500 = arith.constant 500 : index
  %world = comms.team world
  %rank = comms.rank %world
  %peer = arith.subi %c1, %rank : index
  %epoch = comms.epoch
  %before = arith.subi %epoch, %c1 : index
  %base = arith.muli %before, %c500 : index
  scf.for %i = %c0 to %c500 step %c1 {
    comms.signal inc %s[%c0] at %peer of %world : !comms.signal<1>
    %k = arith.addi %base, %i : index
    %next = arith.addi %k, %c1 : index
    %want = arith.index_cast %next : index to i64
    %t = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  }
  comms.return
}
