// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the signal has four cells.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{C1: there is no signal cell 4}}
  %v = comms.read_signal %sig[%c4] : !comms.signal<4>
  comms.return
}

// -----

// C2: a read has nothing to release.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{C2: the order is acquire or relaxed, not release}}
  %v = comms.read_signal %sig[%c0] order release : !comms.signal<4>
  comms.return
}
