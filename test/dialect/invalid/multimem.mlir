// RUN: comms-opt %s -split-input-file -verify-diagnostics

comms.kernel @k(%x: !comms.window<8x64xbf16>) {
  %t = comms.team world
  // expected-error @+1 {{C1: the multimem view of '!comms.window<8x64xbf16>' is 'memref<8x64xbf16, #comms.space<multimem>>', not 'memref<8x64xbf16>'}}
  %a = comms.multimem %x of %t : !comms.window<8x64xbf16> -> memref<8x64xbf16>
  comms.return
}
