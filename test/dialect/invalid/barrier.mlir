// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: the other blocks never come.
comms.kernel @k() {
  %team = comms.team world
  comms.role "producer" blocks 0 to 2 {
    // expected-error @+1 {{C1: a barrier over the grid waits for all blocks, but only some run this role}}
    comms.barrier %team grid
  }
  comms.return
}
