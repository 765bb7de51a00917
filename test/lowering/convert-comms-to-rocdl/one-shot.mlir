// The one-shot kernel for AMD GPUs: a skeleton target holds the seam between targets. Nothing runs this.
// RUN: comms-translate --comms-to-amdgcn %s | FileCheck %s
// RUN: not comms-translate --comms-to-amdgcn --gpu=blocks=2 %s 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not comms-opt %s --comms-to-rocdl="algorithm=one_shot protocol=ll" 2>&1 | FileCheck %s --check-prefix=REFUSED

// CHECK: target triple = "amdgcn-amd-amdhsa"
// CHECK-LABEL: define amdgpu_kernel void @sum(ptr %{{[0-9]+}})
// CHECK-DAG: call{{.*}} i32 @llvm.amdgcn.workgroup.id.x()
// CHECK-DAG: call{{.*}} i32 @llvm.amdgcn.workitem.id.x()
// The tile goes to each rank's window, four elements a thread.
// CHECK-COUNT-4: store <4 x float> %{{[0-9]+}}, ptr
// All threads have stored, then thread 0 tells every rank, and waits for all.
// CHECK: fence syncscope("workgroup") release
// CHECK-NEXT: call void @llvm.amdgcn.s.barrier()
// CHECK-NEXT: fence syncscope("workgroup") acquire
// CHECK: atomicrmw add ptr %{{[0-9]+}}, i64 1 release
// CHECK: load atomic i64, ptr %{{[0-9]+}} acquire, align 8
// CHECK: call void @llvm.amdgcn.s.barrier()
// The sums are made in rank order.
// CHECK-COUNT-4: load <4 x float>, ptr
// CHECK: fadd <4 x float>
// CHECK: fadd <4 x float>
// CHECK: fadd <4 x float>
// CHECK: store <4 x float>
// CHECK: ret void
// CHECK: attributes #{{[0-9]+}} = {{.*}}"amdgpu-flat-work-group-size"="1,64"{{.*}}"target-cpu"="gfx942"

// GPU: comms-translate: error: --gpu has no meaning for --comms-to-amdgcn, which is code for AMD GPUs
// REFUSED: 'comms.packet_store' op is not lowered for AMD GPUs yet: this target is a skeleton (docs/AddATarget.md)
comms.kernel @sum(%x: memref<256xf32>, %y: memref<256xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<256xf32>) outs(%y : memref<256xf32>) {algorithm = "one_shot", protocol = "push"}
  comms.return
}
