// RUN: comms-opt %s -comms-distribute-tiles -comms-legalize-numerics -split-input-file | FileCheck %s

// What loops and branches carry from memory to memory keeps its bits, also single numbers and tiles of one.
// CHECK-LABEL: comms.kernel @moved
// CHECK-NOT:   arith.cmpf
// CHECK:       comms.return
comms.kernel @moved(%x: memref<64xf32>, %y: memref<64xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<1xf32>
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%held = %zero, %tile = %none) -> (f32, tensor<1xf32>) {
    memref.store %held, %y[%i] : memref<64xf32>
    comms.tile_store %tile, %y[%i] : tensor<1xf32>, memref<64xf32>
    %next, %later = scf.if %c -> (f32, tensor<1xf32>) {
      %one = memref.load %x[%i] : memref<64xf32>
      %some = comms.tile_load %x[%i] : memref<64xf32> -> tensor<1xf32>
      scf.yield %one, %some : f32, tensor<1xf32>
    } else {
      scf.yield %held, %tile : f32, tensor<1xf32>
    }
    scf.yield %next, %later : f32, tensor<1xf32>
  }
  memref.store %a, %y[%c0] : memref<64xf32>
  comms.tile_store %b, %y[%c1] : tensor<1xf32>, memref<64xf32>
  %bits = arith.bitcast %a : f32 to i32
  %seen = arith.bitcast %bits : i32 to f32
  memref.store %seen, %y[%c0] : memref<64xf32>
  comms.return
}

// -----

// What is computed on one of the ways may be any NaN.
// CHECK-LABEL: comms.kernel @computed
// CHECK:       scf.for
// CHECK:         arith.cmpf uno
// CHECK:         arith.cmpf uno
// CHECK:         arith.addf
// CHECK:       arith.cmpf uno
// CHECK:       arith.cmpf uno
// CHECK:       arith.cmpf uno
// CHECK:       arith.bitcast
// CHECK:       comms.return
comms.kernel @computed(%x: memref<64xf32>, %y: memref<64xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<1xf32>
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%held = %zero, %tile = %none) -> (f32, tensor<1xf32>) {
    memref.store %held, %y[%i] : memref<64xf32>
    comms.tile_store %tile, %y[%i] : tensor<1xf32>, memref<64xf32>
    %next, %later = scf.if %c -> (f32, tensor<1xf32>) {
      %one = memref.load %x[%i] : memref<64xf32>
      %two = arith.addf %one, %held : f32
      %some = comms.tile_load %x[%i] : memref<64xf32> -> tensor<1xf32>
      %more = arith.mulf %some, %tile : tensor<1xf32>
      scf.yield %two, %more : f32, tensor<1xf32>
    } else {
      scf.yield %held, %tile : f32, tensor<1xf32>
    }
    scf.yield %next, %later : f32, tensor<1xf32>
  }
  memref.store %a, %y[%c0] : memref<64xf32>
  comms.tile_store %b, %y[%c1] : tensor<1xf32>, memref<64xf32>
  %bits = arith.bitcast %a : f32 to i32
  %seen = arith.bitcast %bits : i32 to f32
  memref.store %seen, %y[%c0] : memref<64xf32>
  comms.return
}
