// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{C1: may only terminate a region of a collective, of comms.role or of comms.for_peers}}
  comms.yield
}

// -----

comms.kernel @k() {
  %c = arith.constant 1 : i32
  %t = comms.team world
  comms.for_peers %t as %p {
    // expected-error @+1 {{C2: comms.for_peers has no results, but 1 values are yielded}}
    comms.yield %c : i32
  }
  comms.return
}
