// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The left neighbor may signal for the next launch before this rank has reset the cell.

comms.kernel @signal_lost(%s: !comms.signal<1>)
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
  // expected-note @below {{the signal, in launch 2}}
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  %one = arith.constant 1 : i64
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  // expected-error @below {{'comms.reset_signal' op resets signal s[0] of rank 1 with no order between it and a signal of rank 0 block 0: the signal may be lost}}
  // expected-note @below {{do not reset: wait with `ge` for a value that grows with comms.epoch; or signal only after the signaling block has observed the reset}}
  comms.reset_signal %s[%c0] : !comms.signal<1>
  comms.return
}

// -----

// A barrier between the reset and the next signal.

comms.kernel @barrier_after_reset(%s: !comms.signal<1>)
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
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  %one = arith.constant 1 : i64
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  comms.reset_signal %s[%c0] : !comms.signal<1>
  // Nobody signals again before all have reset.
  comms.barrier %world block
  comms.return
}
