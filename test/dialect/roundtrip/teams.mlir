// RUN: comms-opt %s --verify-roundtrip | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @teams
comms.kernel @teams() attributes {ranks = 16 : i64, lsa_size = 8 : i64} {
  // CHECK: %[[W:.*]] = comms.team world
  %w = comms.team world
  // CHECK: %[[L:.*]] = comms.team lsa
  %l = comms.team lsa
  // CHECK: %[[R:.*]] = comms.team rail
  %r = comms.team rail
  // CHECK: %[[I:.*]] = comms.team_split %[[L]] inner 4
  %i = comms.team_split %l inner 4
  // CHECK: %[[O:.*]] = comms.team_split %[[I]] outer 2
  %o = comms.team_split %i outer 2
  // CHECK: %[[N:.*]] = comms.rank %[[W]]
  %n = comms.rank %w
  // CHECK: comms.size %[[O]]
  %s = comms.size %o
  // CHECK: comms.translate_rank %[[N]] from %[[W]] to %[[R]]
  %q = comms.translate_rank %n from %w to %r
  // CHECK: comms.block_id
  %b = comms.block_id
  // CHECK: comms.num_blocks
  %m = comms.num_blocks
  // CHECK: comms.epoch {test.note = 1 : i32}
  %e = comms.epoch {test.note = 1 : i32}
  comms.return
}
