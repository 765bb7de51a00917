// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the signal has four cells.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c4 = arith.constant 4 : index
  %v1 = arith.constant 1 : i64
  // expected-error @+1 {{C1: there is no signal cell 4}}
  %t = comms.wait_signal %sig[%c4] ge %v1 : !comms.signal<4>
  comms.return
}

// -----

// C2: no cell holds a negative number.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %w1 = arith.constant -1 : i64
  // expected-error @+1 {{C2: the value -1 is negative}}
  %t = comms.wait_signal %sig[%c0] eq %w1 : !comms.signal<4>
  comms.return
}

// -----

// C3: a wait has nothing to release.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %v1 = arith.constant 1 : i64
  // expected-error @+1 {{C3: the order is acquire or relaxed, not release}}
  %t = comms.wait_signal %sig[%c0] ge %v1 order release : !comms.signal<4>
  comms.return
}

// -----

// C3: nor both.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %v1 = arith.constant 1 : i64
  // expected-error @+1 {{C3: the order is acquire or relaxed, not acq_rel}}
  %t = comms.wait_signal %sig[%c0] ge %v1 order acq_rel : !comms.signal<4>
  comms.return
}

// -----

// C4: a signal crosses blocks.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %v1 = arith.constant 1 : i64
  // expected-error @+1 {{C4: a signal crosses blocks; its scope is sys}}
  %t = comms.wait_signal %sig[%c0] ge %v1 scope block : !comms.signal<4>
  comms.return
}
