// RUN: not comms-opt %s -comms-distribute-tiles="threads=96" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not comms-opt %s -comms-distribute-tiles="threads=64 cluster=3" 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: not comms-opt %s -comms-distribute-tiles="cluster=2" 2>&1 | FileCheck %s --check-prefix=NONE

// THREADS: comms-distribute-tiles: threads = 96 is not 32, 64, 128, 256, 512 or 1024
// CLUSTER: comms-distribute-tiles: cluster = 3 is not 1, 2, 4, 8 or 16
// NONE: comms-distribute-tiles: threads = 0 is not 32
comms.kernel @nothing() {
  comms.return
}
