// The pipeline from collectives to LLVM functions, and its options.
// RUN: comms-opt %s --comms-to-cpu=ranks=4 | FileCheck %s
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms-to-cpu{ranks=4 blocks=2 algorithm=ring protocol=pull instrument=true assert-bounds=false check=false tile-size=64 check-events=1000})' | FileCheck %s
// RUN: not comms-opt %s --comms-to-cpu="ranks=4 algorithm=tree" 2>&1 | FileCheck %s --check-prefix=TREE
// RUN: comms-opt %s --comms-to-cpu=ranks=4 --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=ORDER

// Nothing but LLVM is left.
// CHECK: llvm.func @sum
// CHECK-NOT: {{^ *(%[^ ]* = )?(comms|arith|math|scf|vector|memref|tensor)\.}}
// CHECK: llvm.return

// TREE: error: 'comms.all_reduce' op asks for the unknown algorithm 'tree'

// ORDER: comms-expand-collectives
// ORDER: canonicalize
// ORDER: comms-check-sync
// ORDER: comms-lower-channels
// ORDER: comms-eliminate-barriers
// ORDER: canonicalize
// ORDER: comms-assert-bounds
// ORDER: comms-distribute-tiles
// ORDER: comms-legalize-numerics
// ORDER: convert-comms-to-cpu
comms.kernel @sum(%x: memref<300xbf16>, %y: memref<300xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<300xbf16>) outs(%y : memref<300xbf16>)
  comms.return
}
