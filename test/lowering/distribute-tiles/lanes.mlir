// RUN: not comms-opt %s -pass-pipeline='builtin.module(comms.kernel(comms-distribute-tiles{lanes=12}))' 2>&1 | FileCheck %s
// CHECK: lanes = 12 is not 1, 2, 4, 8 or 16
comms.kernel @k() {
  comms.return
}
