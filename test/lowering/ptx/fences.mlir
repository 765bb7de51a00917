// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=1 threads=64 chip=sm_80" | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=1 threads=64 chip=sm_90" | FileCheck %s --check-prefixes=CHECK,SM90

// A fence has its scope. The threads meet behind it, and before one that
// releases: the fence of the thread that signals comes after what all did. What
// a chip does not have is what it has next: no cluster before sm_90, and no
// proxy.
// CHECK-LABEL: .entry fences(
comms.kernel @fences(%x: !comms.window<8xf32>) {
  %team = comms.team world
  // CHECK: bar.sync
  // CHECK: fence.acq_rel.sys;
  // CHECK: bar.sync
  comms.fence release sys
  // CHECK: fence.acq_rel.gpu;
  // CHECK: bar.sync
  comms.fence acquire gpu
  // CHECK: bar.sync
  // SM80: fence.acq_rel.gpu;
  // SM90: fence.acq_rel.cluster;
  // CHECK: bar.sync
  comms.fence acq_rel cluster
  // CHECK: bar.sync
  // CHECK: fence.acq_rel.cta;
  // CHECK: bar.sync
  comms.fence acq_rel block
  // CHECK: bar.sync
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
