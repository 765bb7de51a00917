// Names that no collective asks for are looked at as well.
// RUN: not comms-opt %s -pass-pipeline="builtin.module(comms.kernel(comms-expand-collectives{protocol=fast}))" 2>&1 | FileCheck %s --check-prefix=PROTOCOL
// RUN: not comms-opt %s -pass-pipeline="builtin.module(comms.kernel(comms-expand-collectives{algorithm=tree}))" 2>&1 | FileCheck %s --check-prefix=ALGORITHM
// RUN: comms-opt %s -pass-pipeline="builtin.module(comms.kernel(comms-expand-collectives{protocol=ll algorithm=ring}))"
// PROTOCOL: [[@LINE+2]]:1: error: 'comms.kernel' op asks for the unknown protocol 'fast': known are ll, ll128, lamport, pull, push
// ALGORITHM: [[@LINE+1]]:1: error: 'comms.kernel' op asks for the unknown algorithm 'tree': known are one_shot, permutation, ring, two_shot
comms.kernel @plain(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  comms.return
}
