// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t
// RUN: not comms-opt %s -comms-check-sync -split-input-file 2>/dev/null | FileCheck %s

// Rank 1 fills its slot and answers by a relaxed signal: the store that follows may come before the poison.

comms.kernel @refilled(%w: !comms.window<64xf32> {comms.hidden, comms.init = "poison"}, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %value = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  scf.if %is_sender {
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    // expected-note @below {{rank 0 block 0 observes it here in launch 1, from rank 1 block 0}}
    %heard = comms.wait_signal %s[%c0] ge %value order relaxed : !comms.signal<1>
    // expected-error @below {{'comms.poison_store' op writes to [0, 64) of 'w' at rank 1 on rank 0 block 0 in launch 1, which has observed the write by rank 1 block 0 in launch 1 through relaxed ops only: that write may come last}}
    // expected-note @below {{put comms.fence acq_rel sys before each signal, packet or poison of the chain and before the last write}}
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_receiver {
    %first = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    // expected-note @below {{the earlier write}}
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %world order relaxed : !comms.signal<1>
    %second = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// The answer releases, and the sender acquires it.

// CHECK: @released({{.*}}assumptions = ["launch_is_fence"]
comms.kernel @released(%w: !comms.window<64xf32> {comms.hidden, comms.init = "poison"}, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %value = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  scf.if %is_sender {
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    %heard = comms.wait_signal %s[%c0] ge %value order acquire : !comms.signal<1>
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_receiver {
    %first = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %world order release : !comms.signal<1>
    %second = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// The assumption packets_cumulative says nothing of what no fence has released.

comms.kernel @assumed_unfenced(%w: !comms.window<64xf32> {comms.hidden, comms.init = "poison"}, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64, comms.assumes = ["packets_cumulative"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %value = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  scf.if %is_sender {
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    // expected-note @below {{rank 0 block 0 observes it here in launch 1, from rank 1 block 0}}
    %heard = comms.wait_signal %s[%c0] ge %value order relaxed : !comms.signal<1>
    // expected-error @below {{'comms.poison_store' op writes to [0, 64) of 'w' at rank 1 on rank 0 block 0 in launch 1, which has observed the write by rank 1 block 0 in launch 1 through relaxed ops only: that write may come last}}
    // expected-note @below {{put comms.fence acq_rel sys before each signal, packet or poison of the chain and before the last write}}
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_receiver {
    %first = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    // expected-note @below {{the earlier write}}
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
    comms.signal inc %s[%c0] at %c0 of %world order relaxed : !comms.signal<1>
    %second = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// With a fence behind the poison it suffices.

// CHECK: @assumed({{.*}}assumptions = ["launch_is_fence", "packets_cumulative"]
comms.kernel @assumed(%w: !comms.window<64xf32> {comms.hidden, comms.init = "poison"}, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64, comms.assumes = ["packets_cumulative"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %value = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  scf.if %is_sender {
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    %heard = comms.wait_signal %s[%c0] ge %value order relaxed : !comms.signal<1>
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_receiver {
    %first = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
    comms.fence release sys
    comms.signal inc %s[%c0] at %c0 of %world order relaxed : !comms.signal<1>
    %second = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// Without the assumption the sender has to acquire, too.

comms.kernel @fenced_by_one(%w: !comms.window<64xf32> {comms.hidden, comms.init = "poison"}, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %value = arith.index_cast %epoch : index to i64
  %tile = comms.iota : tensor<64xf32>
  %there = comms.peer %w at %c1 of %world : !comms.window<64xf32> -> memref<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  scf.if %is_sender {
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
    // expected-note @below {{rank 0 block 0 observes it here in launch 1, from rank 1 block 0}}
    %heard = comms.wait_signal %s[%c0] ge %value order relaxed : !comms.signal<1>
    // expected-error @below {{'comms.poison_store' op writes to [0, 64) of 'w' at rank 1 on rank 0 block 0 in launch 1, which has observed the write by rank 1 block 0 in launch 1 through relaxed ops only: that write may come last}}
    // expected-note @below {{put comms.fence acq_rel sys before each signal, packet or poison of the chain and before the last write}}
    comms.poison_store %tile, %there[%c0] : tensor<64xf32>, memref<64xf32>
  }
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_receiver {
    %first = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    // expected-note @below {{the earlier write}}
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
    comms.fence release sys
    comms.signal inc %s[%c0] at %c0 of %world order relaxed : !comms.signal<1>
    %second = comms.poison_load %there[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.poison_fill %there[%c0] count %c64 : memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// Rank 1 has answered in launch 1 before it cleared its slot, and says nothing in launch 2.

comms.kernel @answers_every_other_launch() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %parity = arith.remui %epoch, %c2 : index
  %odd = arith.cmpi eq, %parity, %c1 : index
  %there = comms.channel 0 single over %world slots 1 : !comms.channel<lamport, 64xf32>
  %back = comms.channel 1 single over %world slots 1 : !comms.channel<lamport, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_sender {
    // expected-error @below {{'comms.send' op may write slot 0 in launch 3 before rank 1 block 0 has surely cleared it in launch 1}}
    // expected-note @below {{let the sender receive from that rank in each launch, or from one that has, or end the kernel with a comms.barrier over the team}}
    comms.send %tile on %there[%c0] to %c1 : tensor<64xf32>, !comms.channel<lamport, 64xf32>
  }
  comms.channel_barrier %there : !comms.channel<lamport, 64xf32>
  scf.if %is_receiver {
    %r = comms.recv %there[%c0] from %c0 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    scf.if %odd {
      comms.send %tile on %back[%c0] to %c0 : tensor<64xf32>, !comms.channel<lamport, 64xf32>
    }
  }
  comms.channel_barrier %back : !comms.channel<lamport, 64xf32>
  scf.if %is_sender {
    scf.if %odd {
      %a = comms.recv %back[%c0] from %c1 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    }
  }
  comms.return
}

// -----

// A barrier ends each launch.

comms.kernel @ends_in_a_barrier() attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %world = comms.team world
  %me = comms.rank %world
  %epoch = comms.epoch
  %parity = arith.remui %epoch, %c2 : index
  %odd = arith.cmpi eq, %parity, %c1 : index
  %there = comms.channel 0 single over %world slots 1 : !comms.channel<lamport, 64xf32>
  %back = comms.channel 1 single over %world slots 1 : !comms.channel<lamport, 64xf32>
  %tile = comms.iota : tensor<64xf32>
  %is_sender = arith.cmpi eq, %me, %c0 : index
  %is_receiver = arith.cmpi eq, %me, %c1 : index
  scf.if %is_sender {
    comms.send %tile on %there[%c0] to %c1 : tensor<64xf32>, !comms.channel<lamport, 64xf32>
  }
  comms.channel_barrier %there : !comms.channel<lamport, 64xf32>
  scf.if %is_receiver {
    %r = comms.recv %there[%c0] from %c0 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    scf.if %odd {
      comms.send %tile on %back[%c0] to %c0 : tensor<64xf32>, !comms.channel<lamport, 64xf32>
    }
  }
  comms.channel_barrier %back : !comms.channel<lamport, 64xf32>
  scf.if %is_sender {
    scf.if %odd {
      %a = comms.recv %back[%c0] from %c1 : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
    }
  }
  comms.barrier %world block
  comms.return
}
