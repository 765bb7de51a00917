// What comms-opt has expanded, lowered and checked is a kernel like any other: the
// marks of its passes are dropped.

// RUN: comms-opt "--comms-expand-collectives=algorithm=one_shot protocol=ll" --comms-lower-channels --comms-check-sync %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=MARKS --input-file %t.mlir
// RUN: comms-run %t.mlir --ranks 2 --input x=random:1 --quiet
// RUN: comms-translate --comms-to-ptx "--gpu=blocks=2 threads=128" %t.mlir | FileCheck %s --check-prefix=PTX
// RUN: comms-opt "--comms-expand-collectives=algorithm=one_shot protocol=lamport" --comms-lower-channels --comms-check-sync %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=MARKS --input-file %t.mlir
// RUN: comms-run %t.mlir --ranks 2 --input x=random:1 --quiet
// RUN: comms-translate --comms-to-ptx "--gpu=blocks=2 threads=128" %t.mlir | FileCheck %s --check-prefix=PTX
// RUN: comms-opt "--comms-expand-collectives=algorithm=ring protocol=push" --comms-lower-channels --comms-check-sync %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=MARKS --input-file %t.mlir
// RUN: comms-run %t.mlir --ranks 2 --input x=random:1 --quiet
// RUN: comms-translate --comms-to-ptx "--gpu=blocks=2 threads=128" %t.mlir | FileCheck %s --check-prefix=PTX
// RUN: comms-opt %s --pass-pipeline="builtin.module(comms.kernel(comms-expand-collectives{algorithm=one_shot protocol=lamport},comms-lower-channels),comms-to-nvvm{blocks=2 threads=128})" | FileCheck %s --check-prefix=LOWERED

// MARKS: comms.choices
// MARKS-SAME: comms.proof
// PTX: .visible .entry k
// LOWERED: llvm.func @k
comms.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) attributes {ranks = 2} {
  %t = comms.team world
  comms.all_reduce sum %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  comms.return
}
