// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the counter has two cells.
comms.kernel @k(%cnt: !comms.counter<2>) {
  %c2 = arith.constant 2 : index
  // expected-error @+1 {{C1: there is no counter cell 2}}
  %v = comms.read_counter %cnt[%c2] : !comms.counter<2>
  comms.return
}
