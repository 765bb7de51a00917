// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: a relaxed fence would do nothing.
comms.kernel @k() {
  // expected-error @+1 {{C1: a relaxed fence orders nothing; use acquire, release or acq_rel}}
  comms.fence relaxed sys
  comms.return
}

// -----

// C2: the host orders the copy engine.
comms.kernel @k() {
  // expected-error @+1 {{C2: no fence of a kernel orders the copy engine}}
  comms.fence acq_rel sys proxy copy_engine
  comms.return
}
