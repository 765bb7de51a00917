// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
  comms.send_recv %t from 0 to 1 ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<4xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = comms.scratch : memref<4xi1>
  // expected-error @+1 {{C2: the input is 'memref<4xi1>'}}
  comms.send_recv %t from 0 to 1 ins(%m : memref<4xi1>) outs(%x : memref<4xf32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C3: source 8 is not a rank of the team, which has 8}}
  comms.send_recv %t from 8 to 1 ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) {
  %t = comms.team world
  // expected-error @+1 {{C3: destination -1 is not a rank of the team}}
  comms.send_recv %t from 0 to -1 ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xf32>, %y: memref<63xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: input 'memref<64xf32>' and output 'memref<63xf32>' differ in their elements or in the number of them}}
  comms.send_recv %t from 0 to 1 ins(%x : memref<64xf32>) outs(%y : memref<63xf32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xf32>, %y: memref<64xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: input}}
  comms.send_recv %t from 0 to 1 ins(%x : memref<64xf32>) outs(%y : memref<64xi32>)
  comms.return
}
