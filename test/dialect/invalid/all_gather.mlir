// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: stands in the body of a comms.kernel or of a comms.role, not inside other control flow: every block has to run it, once}}
  comms.all_gather %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: output 'memref<8x64xbf16>' has 512 elements; tiles of 64 make 4096}}
  comms.all_gather %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

// The number of elements does not fit 63 bits.
comms.kernel @k(%x: memref<2305843009213693952x1xi8>, %y: memref<8xi8>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: output 'memref<8xi8>' has 8 elements; tiles of 1 make no whole number of rows}}
  comms.all_gather %t ins(%x : memref<2305843009213693952x1xi8>) outs(%y : memref<8xi8>)
  comms.return
}
