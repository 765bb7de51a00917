// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k(%x: !comms.window<8x64xbf16>) {
  // expected-error @+1 {{C1: a part of '!comms.window<8x64xbf16>' is 'memref<8x64xbf16>', not 'memref<512xbf16>'}}
  %a = comms.local %x : !comms.window<8x64xbf16> -> memref<512xbf16>
  comms.return
}
