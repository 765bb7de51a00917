// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k(%x: !comms.window<8x64xbf16>) {
  %c0 = arith.constant 0 : index
  %t = comms.team world
  // expected-error @+1 {{C1: a part of '!comms.window<8x64xbf16>' is 'memref<8x64xbf16>', not 'memref<8x64xf16>'}}
  %a = comms.peer %x at %c0 of %t : !comms.window<8x64xbf16> -> memref<8x64xf16>
  comms.return
}
