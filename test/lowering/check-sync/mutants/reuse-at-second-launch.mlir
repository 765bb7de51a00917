// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// The wait wants 1 in every launch; the cell keeps the 1 of the first.

comms.kernel @wants_1(%s: !comms.signal<1>)
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
  // expected-error @below {{'comms.wait_signal' op is met at launch 2 by what came in launch 1: rank 0 block 0 wants the signal to be 1 again, and signal s[0] of rank 0 keeps its value from launch to launch}}
  // expected-note @below {{let the value grow with comms.epoch, or reset the cell where no signal can be on its way}}
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  comms.return
}

// -----

// The value grows with the launch.

comms.kernel @wants_epoch(%s: !comms.signal<1>)
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
