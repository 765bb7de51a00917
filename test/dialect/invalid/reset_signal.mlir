// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the signal has four cells.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{C1: there is no signal cell 4}}
  comms.reset_signal %sig[%c4] : !comms.signal<4>
  comms.return
}
