// RUN: comms-opt %s -comms-distribute-tiles="threads=64" -canonicalize -cse -split-input-file > %t
// RUN: FileCheck %s < %t

// Elements of tiles of one length at one address have one owner: the threads need not meet.
// CHECK-LABEL: comms.kernel @same_owner
// CHECK-NOT:     gpu.barrier
// CHECK:         comms.return
comms.kernel @same_owner(%x: memref<256xf32>, %y: memref<256xf32>, %s: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %a, %y[%c0] : tensor<256xf32>, memref<256xf32>
  comms.fence release gpu
  %b = comms.tile_load %y[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %b, %x[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// At another address they have another owner.
// CHECK-LABEL: comms.kernel @shifted
// CHECK:         vector.store %{{.*}}, %y
// CHECK-NEXT:    gpu.barrier
// CHECK:         vector.load %y
comms.kernel @shifted(%x: memref<256xf32>, %y: memref<260xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %a = comms.tile_load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  comms.tile_store %a, %y[%c0] : tensor<256xf32>, memref<260xf32>
  %b = comms.tile_load %y[%c4] : memref<260xf32> -> tensor<256xf32>
  comms.tile_store %b, %x[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// One thread stores a tile of one element; all read it.
// CHECK-LABEL: comms.kernel @scalar
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:         scf.if %[[FIRST]] {
// CHECK-NEXT:      memref.store %{{.*}}, %s[%c0]
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    memref.load %s[%c0]
comms.kernel @scalar(%s: memref<1xf32>, %x: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<1xf32>
  comms.tile_store %one, %s[%c0] : tensor<1xf32>, memref<1xf32>
  %a = comms.tile_load %s[%c0] : memref<1xf32> -> tensor<1xf32>
  %b = comms.broadcast_row %a : tensor<1xf32> -> tensor<256xf32>
  comms.tile_store %b, %x[%c0] : tensor<256xf32>, memref<256xf32>
  comms.return
}

// -----

// An iteration may touch what the one before has: offsets that are multiples of the tile are known not to.
// CHECK-LABEL: comms.kernel @loops
// CHECK:         scf.for
// CHECK-NOT:       gpu.barrier
// CHECK:           vector.store %{{.*}}, %x
// CHECK:         scf.for
// CHECK:           gpu.barrier
// CHECK:           vector.store %{{.*}}, %x
comms.kernel @loops(%x: memref<1024xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %at = arith.muli %i, %c256 : index
    %a = comms.tile_load %x[%at] : memref<1024xf32> -> tensor<256xf32>
    %b = arith.addf %a, %a : tensor<256xf32>
    comms.tile_store %b, %x[%at] : tensor<256xf32>, memref<1024xf32>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %a = comms.tile_load %x[%i] : memref<1024xf32> -> tensor<256xf32>
    %b = arith.addf %a, %a : tensor<256xf32>
    comms.tile_store %b, %x[%i] : tensor<256xf32>, memref<1024xf32>
  }
  comms.return
}

// -----

// Poison is filled in when every thread has looked, unless nobody looks there in this launch.
// CHECK-LABEL: comms.kernel @fill
// CHECK:         comms.poison_load
// CHECK-NOT:     gpu.barrier
// CHECK:         comms.poison_fill %{{.*}}[%b] count %c256 {comms.stale}
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    comms.poison_fill %{{.*}}[%a] count %c256 :
comms.kernel @fill(%w: !comms.window<1024xf32>, %y: memref<256xf32>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %own = comms.local %w : !comms.window<1024xf32> -> memref<1024xf32>
  %t = comms.poison_load %own[%a] : memref<1024xf32> -> tensor<256xf32>
  comms.tile_store %t, %y[%c0] : tensor<256xf32>, memref<256xf32>
  comms.poison_fill %own[%b] count %c256 {comms.stale} : memref<1024xf32>
  comms.poison_fill %own[%a] count %c256 : memref<1024xf32>
  comms.return
}
