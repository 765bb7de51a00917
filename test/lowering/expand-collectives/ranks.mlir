// The kernel and the options must agree on what is fixed.
// RUN: comms-opt %s --comms-expand-collectives="ranks=4 blocks=2" | FileCheck %s
// RUN: not comms-opt %s --comms-expand-collectives="ranks=8 blocks=2" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not comms-opt %s --comms-expand-collectives="blocks=3" 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not comms-opt %s --comms-expand-collectives="ranks=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// CHECK: attributes {blocks = 2 : i64, ranks = 4 : i64}
// RANKS: error: 'comms.kernel' op is written for 4 ranks, but 8 are asked for
// BLOCKS: error: 'comms.kernel' op is written for 2 blocks, but 3 are asked for
// NEGATIVE: error: 'comms.kernel' op cannot have -1 ranks
comms.kernel @k() attributes {ranks = 4 : i64, blocks = 2 : i64} {
  comms.return
}
