// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{C1: ends the body of a comms.kernel, nothing else}}
  comms.return
}

// -----

comms.kernel @k() {
  %t = comms.team world
  comms.for_peers %t as %p {
    // expected-error @+1 {{C1: ends the body of a comms.kernel, nothing else}}
    "comms.return"() : () -> ()
  }
  comms.return
}
