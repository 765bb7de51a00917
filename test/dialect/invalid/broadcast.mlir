// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: stands in the body of a comms.kernel or of a comms.role, not inside other control flow: every block has to run it, once}}
  comms.broadcast root 0 %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: root -1 is no rank of the team, which has 8}}
  comms.broadcast root -1 %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: root 8 is no rank of the team, which has 8}}
  comms.broadcast root 8 %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) {
  %t = comms.team world
  // expected-error @+1 {{C6: root -1 is no rank of the team}}
  comms.broadcast root -1 %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<3xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: output 'memref<3xbf16>' has 3 elements}}
  comms.broadcast root 0 %t ins(%x : memref<8x64xbf16>) outs(%y : memref<3xbf16>)
  comms.return
}
