// What is chosen when nothing is asked for, and what wins when something is.
// RUN: comms-opt %s --comms-expand-collectives=ranks=8 | FileCheck %s
// RUN: comms-opt %s --comms-expand-collectives="ranks=8 algorithm=two_shot tile-size=48" | FileCheck %s --check-prefix=ASKED
// RUN: comms-opt %s --comms-expand-collectives=ranks=8 --remarks-filter=comms-expand-collectives --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// Small: one hop. Large: fewer bytes, no flags next to the data, ranks in step.
// CHECK: {algorithm = "one_shot", op = "all_reduce", protocol = "ll"
// CHECK-SAME: {algorithm = "permutation", op = "all_reduce", protocol = "push", tile = 4096
// CHECK-SAME: {algorithm = "ring", op = "all_reduce", protocol = "lamport"
// CHECK-SAME: ranks = 8

// ASKED: {algorithm = "two_shot", op = "all_reduce", protocol = "ll", tile = 48 : i64, tiles = 6 : i64}
// ASKED-SAME: {algorithm = "two_shot", op = "all_reduce", protocol = "push"
// ASKED-SAME: {algorithm = "two_shot", op = "all_reduce", protocol = "lamport"

// REMARK: one_shot over ll: 1 tiles of 256 for each part of 512 bytes, 8 ranks
// REMARK: ring over lamport
comms.kernel @choices(%a: memref<256xbf16>, %b: memref<33554432xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%a : memref<256xbf16>) outs(%a : memref<256xbf16>)
  comms.all_reduce sum %team ins(%b : memref<33554432xbf16>) outs(%b : memref<33554432xbf16>)
  comms.all_reduce sum %team ins(%a : memref<256xbf16>) outs(%a : memref<256xbf16>) {algorithm = "ring", protocol = "lamport"}
  comms.return
}
