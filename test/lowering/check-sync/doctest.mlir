// The example of the pass's description.
// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics | FileCheck %s

comms.kernel @forgets(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %team = comms.team world
  %rank = comms.rank %team
  %first = arith.cmpi eq, %rank, %c0 : index
  scf.if %first {
    comms.signal inc %s[%c0] at %c1 of %team : !comms.signal<1>
  }
  // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)}}
  // expected-note @below {{no rank has signaled it in this launch}}
  // expected-note @below {{rank 1 block 0 has ended launch 1 without it}}
  // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  comms.return
}

// -----

// Both signal, and the value grows from launch to launch. Nothing is changed.
// CHECK-LABEL: comms.kernel @both
// CHECK:         comms.signal inc %s[%c0] at
// CHECK-NEXT:    comms.wait_signal %s[%c0] ge
// CHECK-NEXT:    comms.return
comms.kernel @both(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %rank = comms.rank %team
  %peer = arith.subi %c1, %rank : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  comms.signal inc %s[%c0] at %peer of %team : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  comms.return
}
