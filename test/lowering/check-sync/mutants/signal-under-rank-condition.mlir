// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Rank 0 skips the signal that its right neighbor waits for.

comms.kernel @rank_0_is_silent(%s: !comms.signal<1>)
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
  %even = arith.cmpi ne, %me, %c0 : index
  scf.if %even {
    comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  }
  // expected-error @below {{deadlock: rank 1, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{no rank has signaled it in this launch}}
  // expected-note @below {{rank 0 block 0 has ended launch 1 without it}}
  // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
  %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  comms.return
}

// -----

// No condition.

comms.kernel @every_rank_signals(%s: !comms.signal<1>)
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
