// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: no slot.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C1: a channel must have at least one slot, not 0}}
  %c = comms.channel 0 pairwise over %team slots 0 : !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C2: a negative id.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C2: the id -1 is negative; ids count from 0}}
  %c = comms.channel -1 pairwise over %team slots 1 : !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C3: two channels of one id.
comms.kernel @k() {
  %team = comms.team world
  %a = comms.channel 7 pairwise over %team slots 1 : !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C3: the kernel already has a channel 7; each must have its own id}}
  %b = comms.channel 7 multicast over %team slots 1 : !comms.channel<ll, 16xf32>
  comms.return
}

// -----

// C4: a channel for each turn of a loop.
comms.kernel @k() {
  %team = comms.team world
  comms.for_peers %team as %peer {
    // expected-error @+1 {{C4: must be in the body of a comms.kernel or comms.role}}
    %c = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 16xf32>
  }
  comms.return
}

// -----

// C5: more memory than a machine has, and than fits 64 bits.
comms.kernel @k() {
  %team = comms.team world
  // expected-error @+1 {{C5: 9223372036854775807 slots of}}
  %c = comms.channel 0 pairwise over %team slots 9223372036854775807 : !comms.channel<ll, 16xf32>
  comms.return
}
