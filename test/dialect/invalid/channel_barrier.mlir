// RUN: comms-opt %s -split-input-file -verify-diagnostics

// C1: a channel that nobody makes.
comms.kernel @k() {
  %loose = builtin.unrealized_conversion_cast to !comms.channel<ll, 16xf32>
  // expected-error @+1 {{C1: the channel must be the result of a comms.channel}}
  comms.channel_barrier %loose : !comms.channel<ll, 16xf32>
  comms.return
}
