// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=1 threads=64 chip=sm_80" | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=1 threads=64 chip=sm_90" | FileCheck %s --check-prefixes=CHECK,SM90

// A fence has its scope, and the threads meet behind it. What a chip does not
// have is what it has next: no cluster before sm_90, and no proxy.
// CHECK-LABEL: .entry fences(
comms.kernel @fences(%x: !comms.window<8xf32>) {
  %team = comms.team world
  // CHECK: fence.acq_rel.sys;
  // CHECK: bar.sync
  comms.fence release sys
  // CHECK: fence.acq_rel.gpu;
  // CHECK: bar.sync
  comms.fence acquire gpu
  // SM80: fence.acq_rel.gpu;
  // SM90: fence.acq_rel.cluster;
  // CHECK: bar.sync
  comms.fence acq_rel cluster
  // CHECK: fence.acq_rel.cta;
  // CHECK: bar.sync
  comms.fence acq_rel block
  // SM80: fence.acq_rel.gpu;
  // SM90: fence.proxy.async;
  // CHECK: bar.sync
  comms.fence release gpu proxy async
  // CHECK: fence.acq_rel.sys;
  // CHECK: bar.sync
  comms.flush %team
  // CHECK: ret;
  comms.return
}
