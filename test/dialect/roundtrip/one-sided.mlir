// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @transfers
comms.kernel @transfers(%data: !comms.window<64xf32>, %src: memref<64xf32>, %dyn: memref<?xf32>,
                        %s: !comms.signal<4>, %c: !comms.counter<2>, %i: index) attributes {ranks = 4 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %v = arith.constant 3 : i64
  %own = comms.local %data : !comms.window<64xf32> -> memref<64xf32>

  // CHECK: comms.put %{{.*}}[%c0] to %{{.*}}[%c32] count %c32 at %c1 of %{{.*}} : memref<64xf32>, <64xf32>
  comms.put %src[%c0] to %data[%c32] count %c32 at %c1 of %team : memref<64xf32>, !comms.window<64xf32>
  // CHECK: comms.put {{.*}} counted %{{.*}}[%c1] : !comms.counter<2> : memref<?xf32>, <64xf32>
  comms.put %dyn[%i] to %data[%i] count %i at %c1 of %team counted %c[%c1] : !comms.counter<2> : memref<?xf32>, !comms.window<64xf32>
  // CHECK: comms.put {{.*}} of %{{[^ ]*}} gin <context_id = 1, backend = proxy> : memref<64xf32>, <64xf32>
  comms.put %own[%c0] to %data[%c32] count %c32 at %c1 of %team gin <context_id = 1, backend = proxy, fence = sys> : memref<64xf32>, !comms.window<64xf32>
  // CHECK: comms.put {{.*}} counted %{{.*}}[%{{.*}}] : !comms.counter<2> gin <backend = gdaki> : memref<64xf32>, <64xf32>
  comms.put %own[%c0] to %data[%c32] count %c32 at %c1 of %team counted %c[%i] : !comms.counter<2> gin <backend = gdaki> : memref<64xf32>, !comms.window<64xf32>

  // CHECK: comms.get %{{.*}}[%c32] to %{{.*}}[%c0] count %c32 at %c1 of %{{[^ ]*}} : <64xf32>, memref<64xf32>
  comms.get %data[%c32] to %src[%c0] count %c32 at %c1 of %team : !comms.window<64xf32>, memref<64xf32>
  // CHECK: comms.get {{.*}} gin <> : <64xf32>, memref<64xf32>
  comms.get %data[%c32] to %own[%c0] count %c32 at %c1 of %team gin <> : !comms.window<64xf32>, memref<64xf32>

  // CHECK: comms.put_signal {{.*}} then inc %{{[^ ]*}}[%c1] : memref<64xf32>, <64xf32>, <4>
  comms.put_signal %src[%c0] to %data[%c0] count %c32 at %c1 of %team then inc %s[%c1] : memref<64xf32>, !comms.window<64xf32>, !comms.signal<4>
  // CHECK: comms.put_signal {{.*}} then set %{{[^ ]*}}[%c1] value %{{[^ ]*}} : memref<64xf32>, <64xf32>, <4>
  comms.put_signal %src[%c0] to %data[%c0] count %c32 at %c1 of %team then set %s[%c1] value %v : memref<64xf32>, !comms.window<64xf32>, !comms.signal<4>
  // CHECK: comms.put_signal {{.*}} then add %{{[^ ]*}}[%c1] value %{{[^ ]*}} gin <> : memref<64xf32>, <64xf32>, <4>
  comms.put_signal %own[%c0] to %data[%c0] count %c32 at %c1 of %team then add %s[%c1] value %v gin <> : memref<64xf32>, !comms.window<64xf32>, !comms.signal<4>
  comms.return
}

// CHECK-LABEL: comms.kernel @signals
comms.kernel @signals(%s: !comms.signal<4>, %c: !comms.counter<2>, %src: memref<64xf32>) {
  %team = comms.team world
  // CHECK: %[[ME:.*]] = comms.rank
  %me = comms.rank %team
  %c1 = arith.constant 1 : index
  %v = arith.constant 3 : i64
  // CHECK: comms.signal inc %{{.*}}[%c1] at %c1 of %{{[^ ]*}} : <4>
  comms.signal inc %s[%c1] at %c1 of %team order release scope sys : !comms.signal<4>
  // CHECK: comms.signal set %{{.*}}[%c1] value %{{[^ ]*}} at %c1 of %{{[^ ]*}} order relaxed : <4>
  comms.signal set %s[%c1] value %v at %c1 of %team order relaxed : !comms.signal<4>
  // CHECK: comms.signal add %{{.*}}[%c1] value %{{[^ ]*}} at %[[ME]] of %{{[^ ]*}} scope gpu : <4>
  comms.signal add %s[%c1] value %v at %me of %team scope gpu : !comms.signal<4>
  // CHECK: comms.signal add {{.*}} order relaxed gin <context_id = 2> : <4>
  comms.signal add %s[%c1] value %v at %c1 of %team order relaxed gin <context_id = 2> : !comms.signal<4>

  // CHECK: %[[T:.*]] = comms.wait_signal %{{.*}}[%c1] ge %{{[^ ]*}} : <4>
  %t = comms.wait_signal %s[%c1] ge %v order acquire scope sys : !comms.signal<4>
  // CHECK: comms.wait_signal %{{.*}}[%c1] eq %{{[^ ]*}} order relaxed scope gpu : <4>
  %t1 = comms.wait_signal %s[%c1] eq %v order relaxed scope gpu : !comms.signal<4>
  // CHECK: comms.wait_signal_from %{{.*}}[%c1] ge %{{[^ ]*}} from %c1 of %{{[^ ]*}} : <4>
  %t2 = comms.wait_signal_from %s[%c1] ge %v from %c1 of %team : !comms.signal<4>
  // CHECK: comms.wait_signal_from %{{.*}}[%c1] eq %{{[^ ]*}} from %[[ME]] of %{{[^ ]*}} order relaxed scope gpu : <4>
  %t3 = comms.wait_signal_from %s[%c1] eq %v from %me of %team order relaxed scope gpu : !comms.signal<4>
  // CHECK: comms.tile_load {{.*}} after %[[T]] :
  %x = comms.tile_load %src[%c1] after %t : memref<64xf32> -> tensor<16xf32>
  // CHECK: comms.read_signal %{{.*}}[%c1] : <4>
  %r = comms.read_signal %s[%c1] : !comms.signal<4>
  // CHECK: comms.read_signal %{{.*}}[%c1] order relaxed : <4>
  %r1 = comms.read_signal %s[%c1] order relaxed : !comms.signal<4>
  // CHECK: comms.reset_signal %{{.*}}[%c1] : <4>
  comms.reset_signal %s[%c1] : !comms.signal<4>

  // CHECK: comms.wait_counter %{{.*}}[%c1] ge %{{[^ ]*}} : <2>
  %t4 = comms.wait_counter %c[%c1] ge %v : !comms.counter<2>
  // CHECK: comms.read_counter %{{.*}}[%c1] : <2>
  %r2 = comms.read_counter %c[%c1] : !comms.counter<2>
  // CHECK: comms.reset_counter %{{.*}}[%c1] : <2>
  comms.reset_counter %c[%c1] : !comms.counter<2>

  // CHECK: comms.flush %{{[^ ]*}}{{$}}
  comms.flush %team
  // CHECK: comms.flush %{{[^ ]*}} gin <backend = proxy>
  comms.flush %team gin <backend = proxy>
  // CHECK: comms.fence acquire block{{$}}
  comms.fence acquire block
  // CHECK: comms.fence release cluster{{$}}
  comms.fence release cluster proxy generic
  // CHECK: comms.fence acq_rel gpu proxy async
  comms.fence acq_rel gpu proxy async
  // CHECK: comms.fence acq_rel sys proxy alias
  comms.fence acq_rel sys proxy alias
  comms.return
}
