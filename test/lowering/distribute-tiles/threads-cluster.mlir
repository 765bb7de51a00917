// RUN: comms-opt %s -comms-distribute-tiles="threads=128 cluster=8" -canonicalize -cse | FileCheck %s

// A row of 8192 bf16 is one vector of each of 1024 threads. Lane c of each warp writes to CTA c; all
// meet once, and every thread combines the 32 values.
// CHECK-LABEL: comms.kernel @row
// CHECK-SAME:    comms.cluster = 8 : i64, comms.threads = 128 : i64
// CHECK:         %[[TID:.*]] = gpu.thread_id x
// CHECK:         %[[CTA:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:         %[[U:.*]] = arith.addi %{{.*}}, %[[TID]]
// CHECK:         nvvm.cluster.arrive.relaxed {aligned}
// CHECK:         %[[FIRST:.*]] = arith.muli %[[U]], %c8 : index
// CHECK:         %[[SHARED:.*]] = comms.scratch : memref<32xi32, #comms.space<shared>>
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         vector.load %x[%[[FIRST]]] {alignment = 16 : i64} : memref<8192xbf16>, vector<8xbf16>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         %[[WRITES:.*]] = arith.cmpi ult, %{{.*}}, %c8
// CHECK:         scf.if %[[WRITES]] {
// CHECK:           memref.extract_aligned_pointer_as_index %[[SHARED]]
// CHECK:           llvm.inline_asm has_side_effects "{{.*}}mapa.shared::cluster{{.*}}st.shared::cluster.b32{{.*}}", "r,r,r,~{memory}"
// CHECK:         }
// CHECK-NEXT:    nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-COUNT-8: vector.load %[[SHARED]]
// CHECK-NOT:     nvvm.cluster
// CHECK-NOT:     alloca
// CHECK:         vector.store %{{.*}}, %y[%[[FIRST]]] {alignment = 16 : i64}
comms.kernel @row(%x: memref<8192xbf16>, %y: memref<8192xbf16>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<8192xbf16> -> tensor<8192xbf16>
  %w = arith.extf %t : tensor<8192xbf16> to tensor<8192xf32>
  %s = comms.row_reduce sum %w : tensor<8192xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<8192xf32>
  %d = arith.mulf %w, %b : tensor<8192xf32>
  %n = arith.truncf %d : tensor<8192xf32> to tensor<8192xbf16>
  comms.tile_store %n, %y[%c0] : tensor<8192xbf16>, memref<8192xbf16>
  comms.return
}
