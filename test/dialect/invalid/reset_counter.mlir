// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: cells are numbered from 0.
comms.kernel @k(%cnt: !comms.counter<2>) {
  %m1 = arith.constant -1 : index
  // expected-error @+1 {{C1: there is no counter cell -1}}
  comms.reset_counter %cnt[%m1] : !comms.counter<2>
  comms.return
}
