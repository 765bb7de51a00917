// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The signal comes from the left neighbor; the wait names the right one.

comms.kernel @wrong_peer(%s: !comms.signal<1>)
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
  // Each rank signals its right neighbor.
  // expected-note @below {{the other signal}}
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  // expected-error @below {{'comms.wait_signal_from' op waits for a signal from rank 1, but rank 3 block 0 updates signal s[0] of rank 0 as well}}
  // expected-note @below {{give each sender a cell of its own, or use comms.wait_signal for a count}}
  %t = comms.wait_signal_from %s[%c0] ge %e from %right of %world : !comms.signal<1>
  comms.return
}

// -----

// The wait names the rank that signals.

comms.kernel @right_peer(%s: !comms.signal<1>)
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
  // Each rank signals its right neighbor.
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  %t = comms.wait_signal_from %s[%c0] ge %e from %left of %world : !comms.signal<1>
  comms.return
}
