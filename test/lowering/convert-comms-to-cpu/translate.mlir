// From a collective to LLVM IR in one command.
// RUN: comms-translate --comms-to-llvmir --ranks=4 %s | FileCheck %s
// RUN: not comms-translate --comms-to-llvmir %s 2>&1 | FileCheck %s --check-prefix=RANKS

// CHECK: define void @sum(ptr %0)
// CHECK: call void @commsir_cpu_stored(
// CHECK: call void @commsir_cpu_wait_packets(
// RANKS: error: {{.*}} give the kernel 'ranks'
comms.kernel @sum(%x: memref<64xf32>, %y: memref<64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {algorithm = "one_shot", protocol = "ll"}
  comms.return
}
