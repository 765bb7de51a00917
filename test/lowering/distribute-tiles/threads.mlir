// RUN: comms-opt %s -comms-distribute-tiles="threads=128" -canonicalize -cse -split-input-file > %t
// RUN: FileCheck %s < %t

// Each thread has one vector of 16 bytes of the narrowest element; f32 follows in the same lanes. What
// a reduction parts stays in registers; each warp gives one value, and one barrier is enough.
// CHECK-LABEL: comms.kernel @row
// CHECK-SAME:    comms.cluster = 1 : i64, comms.threads = 128 : i64
// CHECK-NOT:     alloca
// CHECK:         %[[TID:.*]] = gpu.thread_id x
// CHECK-NOT:     alloca
// CHECK:         %[[FIRST:.*]] = arith.muli %[[TID]], %c8 : index
// CHECK:         %[[SHARED:.*]] = comms.scratch : memref<4xi32, #comms.space<shared>>
// CHECK:         %[[LANE:.*]] = arith.andi %[[TID]], %c31
// CHECK:         %[[X:.*]] = vector.load %x[%[[FIRST]]] {alignment = 16 : i64} : memref<1024xbf16>, vector<8xbf16>
// CHECK:         %[[W:.*]] = arith.extf %[[X]] : vector<8xbf16> to vector<8xf32>
// CHECK:         vector.shuffle %[[W]], %[[W]] [0, 2, 4, 6]
// CHECK:         vector.shuffle %[[W]], %[[W]] [1, 3, 5, 7]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         %[[WARP:.*]] = arith.divui %[[TID]], %c32
// CHECK:         %[[WRITES:.*]] = arith.cmpi ult, %[[LANE]], %c1
// CHECK:         scf.if %[[WRITES]] {
// CHECK-NEXT:      memref.store %{{.*}}, %[[SHARED]][%[[WARP]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load %[[SHARED]][%c0] {alignment = 16 : i64}
// CHECK-NOT:     gpu.barrier
// CHECK:         %[[LESS:.*]] = arith.subf %[[W]], %{{.*}} : vector<8xf32>
// CHECK:         vector.store %{{.*}}, %y[%[[FIRST]]] {alignment = 16 : i64} : memref<1024xf32>, vector<8xf32>
comms.kernel @row(%x: memref<1024xbf16>, %y: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<1024xbf16> -> tensor<1024xbf16>
  %w = arith.extf %t : tensor<1024xbf16> to tensor<1024xf32>
  %s = comms.row_reduce sum %w : tensor<1024xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<1024xf32>
  %d = arith.subf %w, %b : tensor<1024xf32>
  comms.tile_store %d, %y[%c0] : tensor<1024xf32>, memref<1024xf32>
  comms.return
}

// -----

// A tail: whole trips have no condition; in the last one a thread has all of its vector, some lanes, or none.
// CHECK-LABEL: comms.kernel @tail
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c4 : index
// CHECK:         vector.load %x[%[[FIRST]]] {alignment = 16 : i64}
// CHECK:         vector.store
// CHECK:         %[[SECOND:.*]] = arith.addi %[[FIRST]], %c512 : index
// CHECK:         %[[FULL:.*]] = arith.cmpi slt, %{{.*}}, %c601
// CHECK:         scf.if %[[FULL]] {
// CHECK:           vector.load %x[%[[SECOND]]] {alignment = 16 : i64}
// CHECK:         } else {
// CHECK:           %[[SOME:.*]] = arith.cmpi slt, %[[SECOND]], %c601
// CHECK:           scf.if %[[SOME]] {
// CHECK:             vector.maskedload %x[%[[SECOND]]]
// CHECK:             vector.maskedstore %y[%[[SECOND]]]
comms.kernel @tail(%x: memref<601xf32>, %y: memref<601xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<601xf32> -> tensor<601xf32>
  comms.tile_store %t, %y[%c0] : tensor<601xf32>, memref<601xf32>
  comms.return
}

// -----

// `valid` is one more end; what it cuts is moved by nobody.
// CHECK-LABEL: comms.kernel @valid
// CHECK:         %[[LAST:.*]] = arith.minsi %n, %c512
// CHECK:         %[[FULL:.*]] = arith.cmpi slt, %{{.*}}, %[[LAST]]
// CHECK:         scf.if %[[FULL]] {
// CHECK:           vector.load
// CHECK:         } else {
// CHECK:           vector.maskedload
comms.kernel @valid(%x: memref<512xf32>, %y: memref<512xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] valid %n : memref<512xf32> -> tensor<512xf32>
  comms.tile_store %t, %y[%c0] valid %n : tensor<512xf32>, memref<512xf32>
  comms.return
}

// -----

// Many trips are a loop, and what a thread keeps is its own memory.
// CHECK-LABEL: comms.kernel @many
// CHECK:         %[[OWN:.*]] = memref.alloca() : memref<128xf32>
// CHECK:         %[[PARTS:.*]] = memref.alloca() : memref<32xi32>
// CHECK:         %[[SHARED:.*]] = comms.scratch : memref<128xi32, #comms.space<shared>>
// CHECK:         scf.for %[[K:.*]] = %c0 to %c32 step %c1 {
// CHECK:           %[[PLACE:.*]] = arith.muli %[[K]], %c4
// CHECK:           memref.store %{{.*}}, %[[PARTS]][%[[K]]]
// CHECK:           vector.store %{{.*}}, %[[OWN]][%[[PLACE]]]
// CHECK:         } {comms.tile}
// CHECK:         scf.for %[[K:.*]] = %c0 to %c32 step %c1 {
// CHECK:           memref.load %[[PARTS]][%[[K]]]
// CHECK-NEXT:      gpu.subgroup_reduce maxsi
// CHECK:         } {comms.tile}
// CHECK-NEXT:    gpu.barrier
// Chunks of 16,384 elements are 128 values of warps: four for each lane.
// CHECK-COUNT-4: memref.load %[[SHARED]]
comms.kernel @many(%x: memref<16384xf32>, %y: memref<16384xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<16384xf32> -> tensor<16384xf32>
  %s = comms.row_reduce max %t : tensor<16384xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<16384xf32>
  %d = arith.subf %t, %b : tensor<16384xf32>
  comms.tile_store %d, %y[%c0] : tensor<16384xf32>, memref<16384xf32>
  comms.return
}

// -----

// Chunks beyond 16,384 elements are combined from left to right; the last one is shorter.
// CHECK-LABEL: comms.kernel @chunks
// CHECK:         gpu.barrier
// CHECK:         scf.for %{{.*}} = %c128 to %c384 step %c128 iter_args
// CHECK:         } {comms.tile}
comms.kernel @chunks(%x: memref<50000xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<50000xf32> -> tensor<50000xf32>
  %s = comms.row_reduce sum %t : tensor<50000xf32> -> tensor<1xf32>
  comms.tile_store %s, %y[%c0] : tensor<1xf32>, memref<1xf32>
  comms.return
}

// -----

// Two halves of shared memory alternate in a loop over rows.
// CHECK-LABEL: comms.kernel @rows
// CHECK:         %[[TURN:.*]] = memref.alloca() : memref<1xindex>
// CHECK:         memref.store %c0, %[[TURN]][%c0]
// CHECK:         comms.scratch : memref<8xi32, #comms.space<shared>>
// CHECK:         scf.for
// CHECK:           %[[NOW:.*]] = memref.load %[[TURN]][%c0]
// CHECK:           %[[NEXT:.*]] = arith.xori %[[NOW]], %c1
// CHECK:           memref.store %[[NEXT]], %[[TURN]][%c0]
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:         comms.return
comms.kernel @rows(%x: memref<8x512xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c512 = arith.constant 512 : index
  scf.for %r = %c0 to %c8 step %c1 {
    %at = arith.muli %r, %c512 : index
    %t = comms.tile_load %x[%at] : memref<8x512xf32> -> tensor<512xf32>
    %s = comms.row_reduce sum %t : tensor<512xf32> -> tensor<1xf32>
    comms.tile_store %s, %y[%r] : tensor<1xf32>, memref<8xf32>
  }
  comms.return
}

// -----

// Elements of other widths travel as words: 16 bits in 32, 64 bits in two halves.
// CHECK-LABEL: comms.kernel @words
// CHECK-DAG:     comms.scratch : memref<4xi32, #comms.space<shared>>
// CHECK-DAG:     comms.scratch : memref<4xi64, #comms.space<shared>>
// CHECK:         gpu.shuffle xor %{{.*}} : i32
comms.kernel @words(%x: memref<512xf16>, %z: memref<512xi64>, %y: memref<1xf16>, %v: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %t = comms.tile_load %x[%c0] : memref<512xf16> -> tensor<512xf16>
  %s = comms.row_reduce sum %t : tensor<512xf16> -> tensor<1xf16>
  comms.tile_store %s, %y[%c0] : tensor<1xf16>, memref<1xf16>
  %u = comms.tile_load %z[%c0] : memref<512xi64> -> tensor<512xi64>
  %w = comms.row_reduce xor %u : tensor<512xi64> -> tensor<1xi64>
  comms.tile_store %w, %v[%c0] : tensor<1xi64>, memref<1xi64>
  comms.return
}
