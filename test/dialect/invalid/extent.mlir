// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k() {
  // expected-error @+1 {{C1: an extent is at most -1, which is below 0}}
  %n = comms.extent most -1
  comms.return
}
