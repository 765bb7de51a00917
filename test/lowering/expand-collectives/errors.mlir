// What cannot be expanded says what, where and what to do.
// RUN: comms-opt %s -split-input-file -verify-diagnostics --comms-expand-collectives

comms.kernel @unknown_algorithm(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{asks for the unknown algorithm 'tree': known are one_shot, permutation, ring, two_shot}}
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%x : memref<64xf32>) {algorithm = "tree"}
  comms.return
}

// -----

comms.kernel @unknown_protocol(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{asks for the unknown protocol 'pigeon': known are ll, ll128, lamport, pull, push}}
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%x : memref<64xf32>) {protocol = "pigeon"}
  comms.return
}

// -----

comms.kernel @unsupported(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{'comms.all_to_all' op algorithm 'ring' cannot be used: it implements all_reduce, reduce_scatter, all_gather and broadcast; usable here: one_shot}}
  comms.all_to_all %team ins(%x : memref<64xf32>) outs(%x : memref<64xf32>) {algorithm = "ring"}
  comms.return
}

// -----

comms.kernel @no_poison(%x: memref<64xi32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{'comms.all_reduce' op protocol 'lamport' cannot be used: }}
  comms.all_reduce sum %team ins(%x : memref<64xi32>) outs(%x : memref<64xi32>) {protocol = "lamport"}
  comms.return
}

// -----

comms.kernel @no_ranks(%x: memref<64xf32>) {
  %team = comms.team world
  // expected-error @+1 {{has a team whose size is not known: give the kernel 'ranks'}}
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%x : memref<64xf32>)
  comms.return
}

// -----

comms.kernel @dynamic(%x: memref<?xf32>) attributes {ranks = 2 : i64} {
  %team = comms.team world
  // expected-error @+1 {{has an array with a dimension that is not known}}
  comms.all_reduce sum %team ins(%x : memref<?xf32>) outs(%x : memref<?xf32>)
  comms.return
}
