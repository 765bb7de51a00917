// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Elements are sent as data say, and all of them are waited for: packets,
// lines, poison and channels.

comms.kernel @poison(%c: memref<1xi64>, %w: !comms.window<16xf32> {comms.hidden, comms.init = "poison"})
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %n = memref.load %c[%c0] : memref<1xi64>
  %index = arith.index_cast %n : i64 to index
  %low = arith.maxsi %index, %c0 : index
  %valid = arith.minsi %low, %c16 : index
  %tile = comms.iota : tensor<16xf32>
  %there = comms.peer %w at %other of %team : !comms.window<16xf32> -> memref<16xf32>
  %here = comms.local %w : !comms.window<16xf32> -> memref<16xf32>
  // expected-note @below {{the store}}
  comms.poison_store %tile, %there[%c0] valid %valid : tensor<16xf32>, memref<16xf32>
  // expected-error @below {{'comms.poison_load' op expects 16 elements on rank 1 block 0 in launch 1, but data decide how many rank 0 block 0 stores: 0 to 16}}
  // expected-note @below {{store all elements that are waited for, or send the number first and load as many}}
  %got = comms.poison_load %here[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.barrier %team block
  comms.poison_fill %here[%c0] count %c16 : memref<16xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Each side goes by a number of its own.

comms.kernel @channels(%c: memref<1xi64>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %n = memref.load %c[%c0] : memref<1xi64>
  %index = arith.index_cast %n : i64 to index
  %low = arith.maxsi %index, %c0 : index
  %valid = arith.minsi %low, %c8 : index
  %ch = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 8xf32>
  %tile = comms.iota : tensor<8xf32>
  // expected-note @below {{the store}}
  comms.send %tile on %ch[%c0] to %other valid %valid : tensor<8xf32>, !comms.channel<ll, 8xf32>
  comms.channel_barrier %ch : !comms.channel<ll, 8xf32>
  // expected-error @below {{'comms.recv' op expects 0 to 8 elements on rank 1 block 0 in launch 1, but data decide how many rank 0 block 0 stores: 0 to 8}}
  // expected-note @below {{store all elements that are waited for, or send the number first and load as many}}
  %got = comms.recv %ch[%c0] from %other valid %valid : !comms.channel<ll, 8xf32> -> tensor<8xf32>
  comms.barrier %team block
  comms.return
}

// -----

// A number that the host gives all ranks is the same on either side, whatever
// is computed from it.

comms.kernel @same_number(%n: index, %box: !comms.window<16xi64>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %low = arith.maxsi %n, %c0 : index
  %valid = arith.minsi %low, %c16 : index
  %tile = comms.iota : tensor<16xf32>
  %there = comms.peer %box at %other of %team : !comms.window<16xi64> -> memref<16xi64>
  %here = comms.local %box : !comms.window<16xi64> -> memref<16xi64>
  comms.packet_store %tile, %there[%c0] flag %flag valid %valid : tensor<16xf32>, memref<16xi64>
  %got = comms.packet_load %here[%c0] flag %flag valid %valid : memref<16xi64> -> tensor<16xf32>
  comms.barrier %team block
  comms.return
}

// -----

// The number goes before the elements.

comms.kernel @number_first(%c: memref<1xi64>, %count: !comms.window<1xi64>, %box: !comms.window<16xi64>, %s: !comms.signal<1>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %most = arith.constant 16 : i64
  %team = comms.team world
  %me = comms.rank %team
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %flag = arith.index_cast %epoch : index to i32
  %launch = arith.index_cast %epoch : index to i64
  %n = memref.load %c[%c0] : memref<1xi64>
  %low = arith.maxsi %n, %zero : i64
  %mine = arith.minsi %low, %most : i64
  %valid = arith.index_cast %mine : i64 to index
  %tile = comms.iota : tensor<16xf32>
  %number = comms.peer %count at %other of %team : !comms.window<1xi64> -> memref<1xi64>
  memref.store %mine, %number[%c0] : memref<1xi64>
  comms.signal inc %s[%c0] at %other of %team : !comms.signal<1>
  %there = comms.peer %box at %other of %team : !comms.window<16xi64> -> memref<16xi64>
  comms.packet_store %tile, %there[%c0] flag %flag valid %valid : tensor<16xf32>, memref<16xi64>
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  %told = comms.local %count : !comms.window<1xi64> -> memref<1xi64>
  %theirs = memref.load %told[%c0] : memref<1xi64>
  %as_many = arith.index_cast %theirs : i64 to index
  %here = comms.local %box : !comms.window<16xi64> -> memref<16xi64>
  %got = comms.packet_load %here[%c0] flag %flag valid %as_many : memref<16xi64> -> tensor<16xf32>
  comms.barrier %team block
  comms.return
}
