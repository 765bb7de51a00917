// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{C1: may only terminate the body of a comms.kernel}}
  comms.return
}

// -----

comms.kernel @k() {
  %t = comms.team world
  comms.for_peers %t as %p {
    // expected-error @+1 {{C1: may only terminate the body of a comms.kernel}}
    "comms.return"() : () -> ()
  }
  comms.return
}
