// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k() {
  %t = comms.team world
  // expected-error @+1 {{C1: factor is 0; it must be at least 1}}
  %s = comms.team_split %t inner 0
  comms.return
}

// -----

comms.kernel @k() {
  %t = comms.team world
  // expected-error @+1 {{C1: factor is -2; it must be at least 1}}
  %s = comms.team_split %t outer -2
  comms.return
}

// -----

comms.kernel @k() attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C2: factor 3 does not divide the team's 8 ranks}}
  %s = comms.team_split %t inner 3
  comms.return
}

// -----

comms.kernel @k() attributes {ranks = 16 : i64, lsa_size = 4 : i64} {
  %t = comms.team rail
  %s = comms.team_split %t outer 2
  // expected-error @+1 {{C2: factor 4 does not divide the team's 2 ranks}}
  %u = comms.team_split %s inner 4
  comms.return
}
