// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Every rank waits for its left neighbor before it signals its right one.

comms.kernel @wait_first(%s: !comms.signal<1>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 3 should have signaled it}}
  // expected-note @below {{no rank has signaled it in this launch}}
  // expected-note @below {{rank 3, block 0 waits here, for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 1, block 0 waits here too, for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{rank 2, block 0 waits here too, for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{the wait is cyclic: rank 0 block 0 -> rank 3 block 0 -> rank 2 block 0 -> rank 1 block 0 -> rank 0 block 0; let each side signal or send before it waits}}
  %t = comms.wait_signal_from %s[%c0] ge %e from %left of %world : !comms.signal<1>
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  comms.return
}

// -----

// Signal, then wait.

comms.kernel @signal_first(%s: !comms.signal<1>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  %t = comms.wait_signal_from %s[%c0] ge %e from %left of %world : !comms.signal<1>
  comms.return
}
