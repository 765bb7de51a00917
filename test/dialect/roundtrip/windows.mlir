// RUN: comms-opt %s --verify-roundtrip | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @windows
comms.kernel @windows(%x: !comms.window<8x64xbf16>, %d: !comms.window<?x64xi8>, %p: index) {
  %t = comms.team lsa
  // CHECK: comms.local %x : <8x64xbf16> -> memref<8x64xbf16>
  %a = comms.local %x : !comms.window<8x64xbf16> -> memref<8x64xbf16>
  // CHECK: comms.local %d : <?x64xi8> -> memref<?x64xi8>
  %b = comms.local %d : <?x64xi8> -> memref<?x64xi8>
  // CHECK: comms.peer %x at %p of %{{.*}} : <8x64xbf16> -> memref<8x64xbf16>
  %c = comms.peer %x at %p of %t : !comms.window<8x64xbf16> -> memref<8x64xbf16>
  // CHECK: comms.multimem %x of %{{.*}} : <8x64xbf16> -> memref<8x64xbf16, #comms.space<multimem>>
  %m = comms.multimem %x of %t : !comms.window<8x64xbf16> -> memref<8x64xbf16, #comms.space<multimem>>
  // CHECK: comms.scratch : memref<64xf32>
  %s = comms.scratch : memref<64xf32>
  // CHECK: comms.scratch : memref<2x64xi1, #comms.space<scratch>>
  %u = comms.scratch : memref<2x64xi1, #comms.space<scratch>>
  comms.return
}

// CHECK: func.func private @types(!comms.window<?x0x8xf8E4M3FN>, !comms.signal<1>, !comms.counter<2147483647>, !comms.channel<ll, 256xf32>, !comms.channel<"my protocol", 1xi8>, !comms.token, !comms.team)
func.func private @types(!comms.window<?x0x8xf8E4M3FN>, !comms.signal<1>, !comms.counter<2147483647>, !comms.channel<ll, 256xf32>, !comms.channel<"my protocol", 1xi8>, !comms.token, !comms.team)
