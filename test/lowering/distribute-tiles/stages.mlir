// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file | FileCheck %s

// Different arguments do not overlap: one loop.
// CHECK-LABEL: comms.kernel @distinct
// CHECK-COUNT-1: comms.tile
// CHECK-NOT:     comms.tile
// CHECK:         comms.return
comms.kernel @distinct(%x: memref<64xi32>, %y: memref<64xi32>, %i: index, %j: index) {
  %a = comms.tile_load %x[%i] : memref<64xi32> -> tensor<32xi32>
  comms.tile_store %a, %y[%j] : tensor<32xi32>, memref<64xi32>
  %b = comms.tile_load %x[%j] : memref<64xi32> -> tensor<32xi32>
  comms.return
}

// -----

// In place, at one offset: one loop. At two offsets that may overlap: two.
// CHECK-LABEL: comms.kernel @in_place
// CHECK:       scf.for
// CHECK:         vector.load %x
// CHECK:         vector.store %{{.*}}, %x
// CHECK:       } {comms.tile}
// CHECK:       scf.for
// CHECK:         vector.load %x
// CHECK-NOT:     vector.store %{{.*}}, %x
// CHECK:       } {comms.tile}
// CHECK:       scf.for
// CHECK:         vector.store %{{.*}}, %x
// CHECK:       } {comms.tile}
comms.kernel @in_place(%x: memref<64xi32>, %i: index, %j: index) {
  %a = comms.tile_load %x[%i] : memref<64xi32> -> tensor<32xi32>
  %b = arith.addi %a, %a : tensor<32xi32>
  comms.tile_store %b, %x[%i] : tensor<32xi32>, memref<64xi32>
  %c = comms.tile_load %x[%j] : memref<64xi32> -> tensor<32xi32>
  comms.tile_store %c, %x[%i] : tensor<32xi32>, memref<64xi32>
  comms.return
}

// -----

// A peer's part may be this rank's own.
// CHECK-LABEL: comms.kernel @peer
// CHECK-COUNT-2: } {comms.tile}
comms.kernel @peer(%w: !comms.window<64xi32>, %p: index) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %own = comms.local %w : !comms.window<64xi32> -> memref<64xi32>
  %far = comms.peer %w at %p of %team : !comms.window<64xi32> -> memref<64xi32>
  %a = comms.tile_load %far[%c1] : memref<64xi32> -> tensor<32xi32>
  comms.tile_store %a, %own[%c0] : tensor<32xi32>, memref<64xi32>
  comms.return
}

// -----

// A wait does not follow a send in its loop: the peer may need all of it first.
// CHECK-LABEL: comms.kernel @send_then_wait
// CHECK:       scf.for
// CHECK:         comms.packet_store
// CHECK-NOT:     comms.packet_load
// CHECK:       } {comms.tile}
// CHECK:       scf.for
// CHECK:         comms.packet_load
// CHECK:       } {comms.tile}
// What follows a wait may rely on all of it, where peers see it.
// CHECK:       scf.for
// CHECK:         vector.store %{{.*}}, %{{.*}} : memref<32xi32>
// CHECK:       } {comms.tile}
comms.kernel @send_then_wait(%w: !comms.window<64xi64>, %x: memref<32xi32>, %y: !comms.window<32xi32>, %flag: i32) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %own = comms.local %w : !comms.window<64xi64> -> memref<64xi64>
  %far = comms.peer %w at %c1 of %team : !comms.window<64xi64> -> memref<64xi64>
  %a = comms.tile_load %x[%c0] : memref<32xi32> -> tensor<32xi32>
  comms.packet_store %a, %far[%c0] flag %flag : tensor<32xi32>, memref<64xi64>
  %b = comms.packet_load %own[%c0] flag %flag : memref<64xi64> -> tensor<32xi32>
  %out = comms.local %y : !comms.window<32xi32> -> memref<32xi32>
  comms.tile_store %b, %out[%c0] : tensor<32xi32>, memref<32xi32>
  comms.return
}

// -----

// A barrier is between the loops before and after it; index arithmetic is not.
// CHECK-LABEL: comms.kernel @barrier
// CHECK:       } {comms.tile}
// CHECK:       comms.barrier
// CHECK:       scf.for
// CHECK:       } {comms.tile}
// CHECK-NOT:   comms.tile
// CHECK:       comms.return
comms.kernel @barrier(%w: !comms.window<64xi32>, %x: memref<64xi32>, %y: memref<64xi32>, %i: index) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %own = comms.local %w : !comms.window<64xi32> -> memref<64xi32>
  %a = comms.tile_load %x[%c0] : memref<64xi32> -> tensor<32xi32>
  comms.tile_store %a, %own[%c0] : tensor<32xi32>, memref<64xi32>
  comms.barrier %team block
  %b = comms.tile_load %own[%c0] : memref<64xi32> -> tensor<32xi32>
  %j = arith.addi %i, %c1 : index
  comms.check_bounds "x" %j, %c1 in %i
  %c = comms.tile_load %x[%j] : memref<64xi32> -> tensor<32xi32>
  %d = arith.addi %b, %c : tensor<32xi32>
  comms.tile_store %d, %y[%c0] : tensor<32xi32>, memref<64xi32>
  comms.return
}
