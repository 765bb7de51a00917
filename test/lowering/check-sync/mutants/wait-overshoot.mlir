// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A rank does not wait for its right neighbor: it may signal again before that one has looked.

comms.kernel @exactly(%s: !comms.signal<1>)
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
  // expected-note @below {{the later signal, in launch 2}}
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  // expected-error @below {{'comms.wait_signal' op waits on signal s[0] of rank 1 for one exact value, but rank 0 block 0 may signal again before rank 1 block 0 has seen it}}
  // expected-note @below {{wait with `ge`, or let the sender wait for the receiver before it signals again}}
  %t = comms.wait_signal %s[%c0] eq %e : !comms.signal<1>
  comms.return
}

// -----

// `ge` cannot miss a value.

comms.kernel @at_least(%s: !comms.signal<1>)
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
  %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  comms.return
}
