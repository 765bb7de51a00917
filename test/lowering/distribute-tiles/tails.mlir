// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file | FileCheck %s
// RUN: comms-opt %s -pass-pipeline='builtin.module(comms.kernel(comms-distribute-tiles{lanes=4},canonicalize,cse))' -split-input-file \
// RUN:   | FileCheck %s --check-prefix=FOUR

// A rest that is known is one shorter vector: no mask.
// CHECK-LABEL: comms.kernel @rest
// CHECK:       scf.for {{.*}} = %c0 to %c32 step %c16
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK:       } {comms.tile}
// CHECK:       vector.load %x[%c32] : memref<37xf32>, vector<5xf32>
// CHECK:       vector.store {{.*}}, %y[%c32] : memref<37xf32>, vector<5xf32>
// CHECK-NOT:   masked
// FOUR-LABEL:  comms.kernel @rest
// FOUR:        scf.for {{.*}} = %c0 to %c36 step %c4
// FOUR:        vector.load %x[%c36] : memref<37xf32>, vector<1xf32>
comms.kernel @rest(%x: memref<37xf32>, %y: memref<37xf32>) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] : memref<37xf32> -> tensor<37xf32>
  comms.tile_store %tile, %y[%c0] : tensor<37xf32>, memref<37xf32>
  comms.return
}

// -----

// With `valid`, full vectors have no mask, and what is left has one.
// CHECK-LABEL: comms.kernel @valid
// CHECK:       %[[END:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:       %[[FULL:.*]] = arith.andi %[[END]], %c-16
// CHECK:       scf.for {{.*}} = %c0 to %[[FULL]] step %c16
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.store
// CHECK-NEXT:  } {comms.tile}
// CHECK:       scf.for {{.*}} = %[[FULL]] to %[[END]] step %c16
// CHECK:         vector.maskedload
// CHECK:         vector.maskedstore
// CHECK-NEXT:  } {comms.tile}
comms.kernel @valid(%x: memref<64xf32>, %y: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] valid %n : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %tile, %y[%c0] valid %n : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// A `valid` that is the tile's length is none.
// CHECK-LABEL: comms.kernel @all_valid
// CHECK-NOT:   masked
// CHECK:       comms.return
comms.kernel @all_valid(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %tile = comms.tile_load %x[%c0] valid %c64 : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %tile, %y[%c0] valid %c64 : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// Elements beyond `valid` are zero where an op without it sees them.
// CHECK-LABEL: comms.kernel @beyond
// CHECK:       scf.for {{.*}} = %{{.*}} to %c64 step %c16
// CHECK:         vector.maskedload
// CHECK:         vector.store {{.*}}, %y
comms.kernel @beyond(%x: memref<64xi32>, %y: memref<64xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] valid %n : memref<64xi32> -> tensor<64xi32>
  comms.tile_store %tile, %y[%c0] : tensor<64xi32>, memref<64xi32>
  comms.return
}

// -----

// Packets keep whole vectors, and say how many lanes exist; two bf16 a packet.
// CHECK-LABEL: comms.kernel @packets
// CHECK:       scf.for %[[I:.*]] = %c0 to %{{.*}} step %c16
// CHECK:         %[[P:.*]] = arith.divui %[[I]], %c2
// CHECK:         comms.packet_store %{{.*}}, %box[%[[P]]] flag %flag : vector<16xbf16>, memref<20xi64>
// CHECK:       %[[LAST:.*]] = vector.maskedload %x[%c32]
// CHECK:       comms.packet_store %[[LAST]], %box[%c16] flag %flag valid %c7 : vector<16xbf16>, memref<20xi64>
comms.kernel @packets(%x: memref<39xbf16>, %box: memref<20xi64>, %flag: i32) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] : memref<39xbf16> -> tensor<39xbf16>
  comms.packet_store %tile, %box[%c0] flag %flag : tensor<39xbf16>, memref<20xi64>
  comms.return
}

// -----

// A tile of one element is a scalar.
// CHECK-LABEL: comms.kernel @one
// CHECK-NOT:   vector
// CHECK:       memref.load %x[%at]
// CHECK:       scf.if
// CHECK-NEXT:    memref.store %{{.*}}, %y[%at]
comms.kernel @one(%x: memref<8xi32>, %y: memref<8xi32>, %at: index, %n: index) {
  %tile = comms.tile_load %x[%at] : memref<8xi32> -> tensor<1xi32>
  %twice = arith.addi %tile, %tile : tensor<1xi32>
  comms.tile_store %twice, %y[%at] valid %n : tensor<1xi32>, memref<8xi32>
  comms.return
}
