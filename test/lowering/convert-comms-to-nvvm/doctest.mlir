// RUN: comms-opt %s --convert-comms-to-nvvm -canonicalize | FileCheck %s --implicit-check-not=atomicrmw

// CHECK: llvm.func @tell(%[[PARAMS:.*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<(array<8 x i64>)>, nvvm.grid_constant})
// CHECK-SAME: comms.args = [{bytes = 8 : i64, element = "i64", kind = "signal", name = "cells", shape = array<i64: 4>}]
// CHECK-SAME: comms.launch = {blocks = 1 : i64, cluster = 1 : i64, dynamic_shared = 0 : i64, overlap, threads = 1 : i64}
// CHECK-SAME: comms.param_bytes = 64 : i64
// CHECK-SAME: nvvm.kernel, nvvm.reqntid = array<i32: 1>
// CHECK: llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}"
// CHECK: llvm.inline_asm has_side_effects "griddepcontrol.wait;", "~{memory}"
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[PARAMS]][48]
// CHECK: %[[CELL:.*]] = llvm.load %[[AT]] invariant
// CHECK: llvm.inline_asm has_side_effects "red.release.sys.global.add.u64 [$0], $1;", "l,l,~{memory}" %[[CELL]], %{{.*}}
// CHECK: llvm.return
comms.kernel @tell(%cells: !comms.signal<4>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  comms.signal inc %cells[%c0] at %c0 of %team : !comms.signal<4>
  comms.return
}
