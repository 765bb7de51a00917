// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k() {
  %t = comms.team world
  // expected-error @+1 {{C1: the region has one argument, the peer's rank, of type index}}
  "comms.for_peers"(%t) ({
  ^bb0(%p: i32):
    comms.yield
  }) : (!comms.team) -> ()
  comms.return
}

// -----

comms.kernel @k() {
  %t = comms.team world
  // expected-error @+1 {{C1: the region has one argument}}
  "comms.for_peers"(%t) ({
    comms.yield
  }) : (!comms.team) -> ()
  comms.return
}
