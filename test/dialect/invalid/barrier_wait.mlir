// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: a wait on a signal is no arrival.
comms.kernel @k(%sig: !comms.signal<4>) {
  %c0 = arith.constant 0 : index
  %v1 = arith.constant 1 : i64
  %t = comms.wait_signal %sig[%c0] ge %v1 : !comms.signal<4>
  // expected-error @+1 {{C1: the token must be the result of a comms.barrier_arrive}}
  %done = comms.barrier_wait %t
  comms.return
}

// -----

// C2: the wait runs once for each peer, the arrival once.
comms.kernel @k() {
  %team = comms.team world
  %t = comms.barrier_arrive %team block
  comms.for_peers %team as %peer {
    // expected-error @+1 {{C2: the arrive and its wait must stand in the same block of operations}}
    %done = comms.barrier_wait %t
  }
  comms.return
}

// -----

// C3: to wait is to acquire.
comms.kernel @k() {
  %team = comms.team world
  %t = comms.barrier_arrive %team block
  // expected-error @+1 {{C3: the order is acquire or relaxed, not release}}
  %done = comms.barrier_wait %t order release
  comms.return
}
