// LLVM takes what a location carries for debug information.
// RUN: not comms-opt %s -comms-check-ops 2>&1 | FileCheck %s

// CHECK: other.mlir:1:1: error: 'arith.constant' op has debug information in its location: write loc("FILE":LINE:COLUMN), or leave it out
comms.kernel @fused() {
  %c = arith.constant 1 : i32 loc(fused<"what">["other.mlir":1:1])
  comms.return
}
