// RUN: comms-opt %s -comms-distribute-tiles="threads=128 cluster=8" -canonicalize -cse -split-input-file | FileCheck %s
// RUN: comms-opt %s -comms-distribute-tiles="threads=128" -canonicalize -cse -split-input-file | FileCheck %s --check-prefix=CTA

// Two rows that do not depend on each other share an exchange, whatever stands between them: here the
// first has been used by then. A warp finds the greatest in one instruction, among i32 in the order of
// the floats, while the sum takes shuffles. Both values travel in one store, 8 bytes of each of 32 warps
// are counted, and threads await them once. Then each lane reads those of one warp.
// CHECK-LABEL: comms.kernel @independent
// CHECK:         mbarrier.init{{.*}} %c256_i32,
// CHECK-NOT:     mbarrier.init
// CHECK:         nvvm.cluster.arrive.relaxed
// CHECK:         %[[SHARED:.*]] = comms.scratch : memref<64xi32, #comms.space<shared>>
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:         %[[SIGN:.*]] = arith.shrsi %[[BITS]], %c31_i32
// CHECK:         %[[OTHERS:.*]] = arith.andi %[[SIGN]], %c2147483647_i32
// CHECK:         %[[ORDERED:.*]] = arith.xori %[[BITS]], %[[OTHERS]]
// CHECK:         %[[MAX:.*]] = gpu.subgroup_reduce maxsi %[[ORDERED]] uniform : (i32) -> i32
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK:         st.async{{.*}}.v2.b32{{.*}}, %[[MAX]], %{{.*}} : (i32, i32, i32, i32, i32) -> ()
// CHECK-NOT:     st.async
// CHECK:         mbarrier.try_wait
// CHECK:         %[[WORDS:.*]] = vector.load %[[SHARED]]{{.*}} {alignment = 8 : i64} : memref<64xi32, #comms.space<shared>>, vector<2xi32>
// CHECK-NOT:     vector.load %[[SHARED]]
// CHECK:         %[[WORD:.*]] = vector.extract %[[WORDS]][1]
// CHECK:         %[[ALL:.*]] = gpu.subgroup_reduce maxsi %[[WORD]] uniform : (i32) -> i32
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:     {{gpu.shuffle|gpu.subgroup|mbarrier|nvvm.cluster|st.async}}
// CHECK:         comms.return
// A CTA alone: one barrier, both values in one store for each of 8 trips.
// CTA-LABEL: comms.kernel @independent
// CTA:         vector.store %{{.*}} {alignment = 8 : i64} : memref<64xi32, #comms.space<shared>>, vector<2xi32>
// CTA:         gpu.barrier
// CTA-NOT:     gpu.barrier
// CTA:         comms.return
comms.kernel @independent(%x: memref<8192xbf16>, %y: memref<8192xbf16>, %z: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<8192xbf16> -> tensor<8192xbf16>
  %w = arith.extf %t : tensor<8192xbf16> to tensor<8192xf32>
  %s = comms.row_reduce sum %w : tensor<8192xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<8192xf32>
  %d = arith.mulf %w, %b : tensor<8192xf32>
  %n = arith.truncf %d : tensor<8192xf32> to tensor<8192xbf16>
  %a = math.absf %w : tensor<8192xf32>
  %m = comms.row_reduce max %a : tensor<8192xf32> -> tensor<1xf32>
  comms.tile_store %n, %y[%c0] : tensor<8192xbf16>, memref<8192xbf16>
  comms.tile_store %m, %z[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// The second depends on the first: two exchanges, and no algebra makes one of them.
// CHECK-LABEL: comms.kernel @dependent
// CHECK-COUNT-2: mbarrier.init{{.*}} %c128_i32,
// CHECK:         st.async{{.*}}complete_tx::bytes.b32
// CHECK:         mbarrier.try_wait
// CHECK:         st.async{{.*}}complete_tx::bytes.b32
// CHECK:         mbarrier.try_wait
// CHECK-NOT:     nvvm.cluster
// CTA-LABEL: comms.kernel @dependent
// CTA-COUNT-2: gpu.barrier
// CTA-NOT:     gpu.barrier
// CTA:         comms.return
comms.kernel @dependent(%x: memref<4096xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<4096xf32> -> tensor<4096xf32>
  %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<4096xf32>
  %d = arith.mulf %t, %b : tensor<4096xf32>
  %m = comms.row_reduce max %d : tensor<4096xf32> -> tensor<1xf32>
  comms.tile_store %m, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// Of three the third depends on the first: the second shares the first's exchange. Five words and more are
// several records with one arrival: 16 bytes of four rows, 4 of the fifth.
// CHECK-LABEL: comms.kernel @many
// CHECK:         mbarrier.init{{.*}} %c640_i32,
// CHECK:         mbarrier.init{{.*}} %c128_i32,
// CHECK:         st.async{{.*}}.v4.b32
// CHECK:         st.async{{.*}}complete_tx::bytes.b32
// CHECK-NOT:     st.async
// CHECK:         mbarrier.try_wait
// CHECK:         st.async{{.*}}complete_tx::bytes.b32
// CHECK:         mbarrier.try_wait
// CHECK-NOT:     nvvm.cluster
comms.kernel @many(%x: memref<4096xf32>, %y: memref<6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %t = comms.tile_load %x[%c0] : memref<4096xf32> -> tensor<4096xf32>
  %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<4096xf32>
  %d = arith.mulf %t, %b : tensor<4096xf32>
  %u = comms.row_reduce max %d : tensor<4096xf32> -> tensor<1xf32>
  %m = comms.row_reduce max %t : tensor<4096xf32> -> tensor<1xf32>
  %l = comms.row_reduce min %t : tensor<4096xf32> -> tensor<1xf32>
  %p = comms.row_reduce prod %t : tensor<4096xf32> -> tensor<1xf32>
  %q = arith.mulf %t, %t : tensor<4096xf32>
  %v = comms.row_reduce avg %q : tensor<4096xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<6xf32>
  comms.tile_store %u, %y[%c1] : tensor<1xf32>, memref<6xf32>
  comms.tile_store %m, %y[%c2] : tensor<1xf32>, memref<6xf32>
  comms.tile_store %l, %y[%c3] : tensor<1xf32>, memref<6xf32>
  comms.tile_store %p, %y[%c4] : tensor<1xf32>, memref<6xf32>
  comms.tile_store %v, %y[%c5] : tensor<1xf32>, memref<6xf32>
  comms.return
}

// -----

// What would have to pass a store, or reads memory that one writes, stays: two exchanges.
// CHECK-LABEL: comms.kernel @memory
// CHECK-COUNT-2: mbarrier.init
// CHECK-COUNT-2: mbarrier.try_wait
comms.kernel @memory(%x: memref<8192xf32>, %y: memref<1xf32>, %i: index, %j: index) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%i] : memref<8192xf32> -> tensor<4096xf32>
  %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<4096xf32>
  comms.tile_store %b, %x[%i] : tensor<4096xf32>, memref<8192xf32>
  %u = comms.tile_load %x[%j] : memref<8192xf32> -> tensor<4096xf32>
  %m = comms.row_reduce max %u : tensor<4096xf32> -> tensor<1xf32>
  comms.tile_store %m, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// In a loop: one barrier of the cluster a row, and two halves of the memory of both.
// CHECK-LABEL: comms.kernel @again
// CHECK-NOT:     mbarrier
// CHECK:         comms.scratch : memref<128xi32, #comms.space<shared>>
// CHECK:         scf.for
// CHECK:         st.shared::cluster.v2.b32
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-NOT:     nvvm.cluster
// CHECK:         comms.return
comms.kernel @again(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  scf.for %row = %c0 to %rows step %c1 {
    %at = arith.muli %row, %c4096 : index
    %t = comms.tile_load %x[%at] : memref<?xf32> -> tensor<4096xf32>
    %s = comms.row_reduce sum %t : tensor<4096xf32> -> tensor<1xf32>
    %m = comms.row_reduce max %t : tensor<4096xf32> -> tensor<1xf32>
    comms.tile_store %s, %y[%row] : tensor<1xf32>, memref<?xf32>
    comms.tile_store %m, %z[%row] : tensor<1xf32>, memref<?xf32>
  }
  comms.return
}
