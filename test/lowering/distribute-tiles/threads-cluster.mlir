// RUN: comms-opt %s -comms-distribute-tiles="threads=128 cluster=8" -canonicalize -cse -split-input-file | FileCheck %s

// A row of 8192 bf16 is one vector of each of 1024 threads. Lane c of each warp writes to CTA c, where
// the bytes are counted: 4 of each of 32 warps. Who has them combines the 32 values; nothing is fenced
// and no barrier follows the one at the start, after which every CTA counts.
// CHECK-LABEL: comms.kernel @row
// CHECK-SAME:    comms.cluster = 8 : i64, comms.threads = 128 : i64
// CHECK:         %[[TID:.*]] = gpu.thread_id x
// CHECK:         %[[CTA:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:         %[[U:.*]] = arith.addi %{{.*}}, %[[TID]]
// CHECK:         %[[CELLS:.*]] = comms.scratch : memref<1xi64, #comms.space<shared>>
// CHECK:         arith.andi %[[U]], %c127
// CHECK:         %[[IS_FIRST:.*]] = arith.extui
// CHECK:         %[[CELL:.*]] = arith.index_cast
// CHECK:         llvm.inline_asm has_side_effects "{{.*}}@p mbarrier.init.shared::cta.b64 [$0], 1; @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }", "r,r,r,~{memory}" %[[CELL]], %c128_i32, %[[IS_FIRST]]
// CHECK-NEXT:    llvm.inline_asm has_side_effects "fence.mbarrier_init.release.cluster;"
// CHECK-NEXT:    nvvm.cluster.arrive.relaxed {aligned}
// CHECK:         %[[FIRST:.*]] = arith.muli %[[U]], %c8 : index
// CHECK:         %[[SHARED:.*]] = comms.scratch : memref<32xi32, #comms.space<shared>>
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         vector.load %x[%[[FIRST]]] {alignment = 16 : i64} : memref<8192xbf16>, vector<8xbf16>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         %[[WRITES:.*]] = arith.cmpi ult, %{{.*}}, %c8
// CHECK:         scf.if %[[WRITES]] {
// CHECK:           memref.extract_aligned_pointer_as_index %[[SHARED]]
// CHECK:           llvm.inline_asm has_side_effects "{{.*}}mapa.shared::cluster{{.*}}st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], $2, [m]; }", "r,r,r,r,~{memory}" %{{.*}}, %{{.*}}, %{{.*}}, %[[CELL]]
// CHECK:         }
// CHECK-NEXT:    llvm.inline_asm has_side_effects "{{.*}}mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], 0;{{.*}}", "r,~{memory}" %[[CELL]]
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

// -----

// Two rows, one of f64: one count. What both have makes 12 bytes, which travel as 16.
// CHECK-LABEL: comms.kernel @two
// CHECK:         mbarrier.init{{.*}} %c512_i32,
// CHECK-NOT:     mbarrier.init
// CHECK:         nvvm.cluster.arrive.relaxed
// CHECK:         comms.scratch : memref<128xi32, #comms.space<shared>>
// CHECK:         st.async{{.*}}.v4.b32
// CHECK-NOT:     st.async
// CHECK:         mbarrier.try_wait
// CHECK-NOT:     mbarrier.try_wait
// CHECK-NOT:     nvvm.cluster
comms.kernel @two(%x: memref<2048xf32>, %y: memref<2xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = comms.tile_load %x[%c0] : memref<2048xf32> -> tensor<2048xf32>
  %s = comms.row_reduce sum %t : tensor<2048xf32> -> tensor<1xf32>
  %w = arith.extf %t : tensor<2048xf32> to tensor<2048xf64>
  %m = comms.row_reduce max %w : tensor<2048xf64> -> tensor<1xf64>
  %d = arith.extf %s : tensor<1xf32> to tensor<1xf64>
  comms.tile_store %d, %y[%c0] : tensor<1xf64>, memref<2xf64>
  comms.tile_store %m, %y[%c1] : tensor<1xf64>, memref<2xf64>
  comms.return
}

// -----

// A count is used once. What may run twice has a barrier, and two halves of its memory.
// CHECK-LABEL: comms.kernel @again
// CHECK-NOT:     mbarrier
// CHECK:         comms.scratch : memref<64xi32, #comms.space<shared>>
// CHECK:         st.shared::cluster.b32
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
comms.kernel @again(%x: memref<?xf32>, %y: memref<?xf32>, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  scf.for %row = %c0 to %rows step %c1 {
    %at = arith.muli %row, %c4096 : index
    %t = comms.tile_load %x[%at] : memref<?xf32> -> tensor<4096xf32>
    %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
    comms.tile_store %s, %y[%row] : tensor<1xf32>, memref<?xf32>
  }
  comms.return
}

// -----

// Threads that leave at a wrong offset would never be counted: exited threads count at barriers alone.
// CHECK-LABEL: comms.kernel @checked
// CHECK-NOT:     mbarrier
// CHECK:         st.shared::cluster.b32
// CHECK:         nvvm.cluster.arrive {aligned}
comms.kernel @checked(%x: memref<4096xf32>, %y: memref<1xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  comms.check_bounds "memref" %at, %c4096 in %c4096
  %t = comms.tile_load %x[%at] : memref<4096xf32> -> tensor<4096xf32>
  %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}
