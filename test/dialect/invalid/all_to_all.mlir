// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: stands in the body of a comms.kernel or of a comms.role, not inside other control flow: every block has to run it, once}}
  comms.all_to_all %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<9x64xbf16>, %y: memref<9x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 9 rows cannot be cut into 8 equal parts}}
  comms.all_to_all %t ins(%x : memref<9x64xbf16>) outs(%y : memref<9x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<16x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: output 'memref<16x64xbf16>' has 1024 elements; tiles of 64 make 512}}
  comms.all_to_all %t ins(%x : memref<8x64xbf16>) outs(%y : memref<16x64xbf16>)
  comms.return
}
