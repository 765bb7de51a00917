// What cannot be compared is not decided.
// RUN: comms-opt %s -comms-check-expansion -split-input-file -verify-diagnostics -o %t

// expected-warning @below {{not decided: 'comms.kernel' op has 'comms.team_split' besides its collectives, which is not followed}}
comms.kernel @part(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 4 : i64} {
  %world = comms.team world
  %half = comms.team_split %world inner 2
  comms.all_reduce sum %half ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  comms.return
}

// -----

// expected-error @below {{'comms.kernel' op is checked for 0 ranks; comms-check-expansion takes 1 to 64}}
comms.kernel @unknown(%x: memref<512xf32>, %y: memref<512xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  comms.return
}
