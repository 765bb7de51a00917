// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// No put is counted.

comms.kernel @not_counted(%n_left: !comms.counter<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1 : i64
  comms.put %x[%c0] to %w[%c0] count %c64 at %right of %world : memref<64xf32>, !comms.window<64xf32>
  // expected-error @below {{deadlock: rank 0, block 0 waits for counter n_left[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 1, block 0 waits here too, for counter n_left[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 2, block 0 waits here too, for counter n_left[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 3, block 0 waits here too, for counter n_left[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{only this rank's own comms.put ops with `counted` increment the counter: check how many it runs}}
  %t = comms.wait_counter %n_left[%c0] ge %one : !comms.counter<1>
  comms.reset_counter %n_left[%c0] : !comms.counter<1>
  comms.barrier %world block
  comms.return
}

// -----

// The put counts.

comms.kernel @counted(%n_left: !comms.counter<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1 : i64
  comms.put %x[%c0] to %w[%c0] count %c64 at %right of %world counted %n_left[%c0] : !comms.counter<1> : memref<64xf32>, !comms.window<64xf32>
  %t = comms.wait_counter %n_left[%c0] ge %one : !comms.counter<1>
  comms.reset_counter %n_left[%c0] : !comms.counter<1>
  comms.barrier %world block
  comms.return
}
