// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8x4xf32>, %s: memref<8xi32>) {
  // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
  comms.all_to_all_v %t ins(%x : memref<8x4xf32>) outs(%x : memref<8x4xf32>) send_rows(%s : memref<8xi32>) recv_rows(%s : memref<8xi32>) max_rows 1
  return
}

// -----

comms.kernel @k(%s: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = comms.scratch : memref<8xi1>
  // expected-error @+1 {{C2: the input is 'memref<8xi1>'}}
  comms.all_to_all_v %t ins(%m : memref<8xi1>) outs(%m : memref<8xi1>) send_rows(%s : memref<8xi32>) recv_rows(%s : memref<8xi32>) max_rows 1
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %s: memref<8xi64>, %r: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C3: send_rows is 'memref<8xi64>'; it must be an array of rank 1 of i32, one for each rank of the team, which has 8}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) send_rows(%s : memref<8xi64>) recv_rows(%r : memref<8xi32>) max_rows 4
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %s: memref<8xi32>, %r: memref<9xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C3: recv_rows is 'memref<9xi32>'}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<9xi32>) max_rows 4
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %s: memref<8xi32>, %r: memref<2x4xi32>) {
  %t = comms.team world
  // expected-error @+1 {{C3: recv_rows is 'memref<2x4xi32>'; it must be an array of rank 1 of i32, one for each rank of the team}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<2x4xi32>) max_rows 4
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x8xf32>, %s: memref<8xi32>, %r: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: input 'memref<64x16xf32>' and output 'memref<64x8xf32>' differ in the length of their rows or in their elements}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x8xf32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<8xi32>) max_rows 4
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xi32>, %s: memref<8xi32>, %r: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: input}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xi32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<8xi32>) max_rows 4
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %s: memref<8xi32>, %r: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: max_rows is 0; it must be 1 to 2147483647}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<8xi32>) max_rows 0
  comms.return
}

// -----

comms.kernel @k(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %s: memref<8xi32>, %r: memref<8xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: max_rows is -1}}
  comms.all_to_all_v %t ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) send_rows(%s : memref<8xi32>) recv_rows(%r : memref<8xi32>) max_rows -1
  comms.return
}
