// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the counter has two cells.
comms.kernel @k(%cnt: !comms.counter<2>) {
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  // expected-error @+1 {{C1: there is no counter cell 2}}
  %t = comms.wait_counter %cnt[%c2] ge %v1 : !comms.counter<2>
  comms.return
}

// -----

// C2: no cell holds a negative number.
comms.kernel @k(%cnt: !comms.counter<2>) {
  %c0 = arith.constant 0 : index
  %w1 = arith.constant -1 : i64
  // expected-error @+1 {{C2: the value -1 is negative}}
  %t = comms.wait_counter %cnt[%c0] ge %w1 : !comms.counter<2>
  comms.return
}
