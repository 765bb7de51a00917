// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the other blocks never come.
comms.kernel @k() {
  %team = comms.team world
  comms.role "producer" blocks 0 to 2 {
    // expected-error @+1 {{C1: a barrier over the grid waits for all blocks, but only some run this role}}
    %t = comms.barrier_arrive %team grid
    %done = comms.barrier_wait %t
  }
  comms.return
}

// -----

// C2: to arrive is to release.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C2: the order is release or relaxed, not acq_rel}}
  %t = comms.barrier_arrive %team block order acq_rel
  %done = comms.barrier_wait %t
  comms.return
}

// -----

// C3: nobody waits.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C3: exactly one comms.barrier_wait must use the token, and no other op}}
  %t = comms.barrier_arrive %team block
  comms.return
}

// -----

// C3: two waits for one arrival.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C3: exactly one comms.barrier_wait must use the token, and no other op}}
  %t = comms.barrier_arrive %team block
  %done = comms.barrier_wait %t
  %again = comms.barrier_wait %t
  comms.return
}

// -----

// C3: to have arrived is no evidence that others have.
comms.kernel @k(%src: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  // expected-error @+1 {{C3: exactly one comms.barrier_wait must use the token, and no other op}}
  %t = comms.barrier_arrive %team block
  %x = comms.tile_load %src[%c0] after %t : memref<64xf32> -> tensor<16xf32>
  comms.return
}

// -----

// C4: two phases of one barrier at once.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C4: another barrier of this team and extent begins before the wait for this one; wait first}}
  %t = comms.barrier_arrive %team block
  // expected-note @+1 {{the other barrier is here}}
  comms.barrier %team block
  %done = comms.barrier_wait %t
  comms.return
}
