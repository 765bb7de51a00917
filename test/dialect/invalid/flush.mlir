// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: contexts are numbered from 0.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C1: GIN contexts are numbered from 0}}
  comms.flush %team gin <context_id = -1>
  comms.return
}

// -----

// C2: the adapter reads memory at system scope.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C2: a network adapter reads memory at system scope; write fence = sys, not gpu}}
  comms.flush %team gin <fence = gpu>
  comms.return
}
