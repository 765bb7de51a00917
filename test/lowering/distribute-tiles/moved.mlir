// RUN: comms-opt %s -comms-distribute-tiles -canonicalize -cse -split-input-file | FileCheck %s

// What loops and branches carry from memory to memory keeps its bits.
// CHECK-LABEL: comms.kernel @moved
// CHECK-NOT:   arith.cmpf
// CHECK:       comms.return
comms.kernel @moved(%x: memref<4x64xf32>, %y: memref<4x64xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%held = %zero) -> (tensor<64xf32>) {
    %at = arith.muli %i, %c64 : index
    comms.tile_store %held, %y[%at] : tensor<64xf32>, memref<4x64xf32>
    %next = scf.if %c -> (tensor<64xf32>) {
      %a = comms.tile_load %x[%at] : memref<4x64xf32> -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    } else {
      scf.yield %held : tensor<64xf32>
    }
    scf.yield %next : tensor<64xf32>
  }
  comms.tile_store %last, %y[%c0] : tensor<64xf32>, memref<4x64xf32>
  comms.return
}

// -----

// What is computed on one of the ways may be any NaN.
// CHECK-LABEL: comms.kernel @computed
// CHECK:       scf.for
// CHECK:         arith.cmpf uno
// CHECK:       arith.addf
// CHECK:       arith.cmpf uno
// CHECK:       comms.return
comms.kernel @computed(%x: memref<4x64xf32>, %y: memref<4x64xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%held = %zero) -> (tensor<64xf32>) {
    %at = arith.muli %i, %c64 : index
    comms.tile_store %held, %y[%at] : tensor<64xf32>, memref<4x64xf32>
    %next = scf.if %c -> (tensor<64xf32>) {
      %a = comms.tile_load %x[%at] : memref<4x64xf32> -> tensor<64xf32>
      %b = arith.addf %a, %a : tensor<64xf32>
      scf.yield %b : tensor<64xf32>
    } else {
      scf.yield %held : tensor<64xf32>
    }
    scf.yield %next : tensor<64xf32>
  }
  comms.tile_store %last, %y[%c0] : tensor<64xf32>, memref<4x64xf32>
  comms.return
}
