// The rules of generated code hold for NCCL's that is linked in: no inline
// assembly that memory accesses may move over, and no atomicrmw.
// RUN: llvm-as %S/Inputs/loose.ll -o %t.loose.bc
// RUN: comms-translate %s --comms-to-nvptx --gpu="impl=nccl check=false" --device-library=%t.loose.bc | FileCheck %s --check-prefix=PINNED
// PINNED-LABEL: define internal i32 @commsir_nccl_world_rank
// PINNED: call void asm sideeffect "fence.acquire.sys;", "~{memory}"()
// PINNED-NEXT: call i32 asm sideeffect "ld.relaxed.gpu.b32 $0, [$1];", "=r,l,~{memory}"(ptr %{{[a-z0-9]+}}){{$}}
// PINNED-NEXT: call void asm sideeffect "fence.acq_rel.sys;", "~{memory}"()

// RUN: llvm-as %S/Inputs/atomic.ll -o %t.atomic.bc
// RUN: not comms-translate %s --comms-to-ptx --gpu="impl=nccl check=false" --device-library=%t.atomic.bc 2>&1 | FileCheck %s --check-prefix=ATOMIC
// ATOMIC: error: function 'commsir_nccl_world_rank' has an atomicrmw, whose order and scope NVPTX drops

// In the library itself, of all that is called: whatever has no side effects,
// or constraints that do not end with the clobber, is found.
// RUN: comms-translate %S/calls.mlir --comms-to-nvptx --gpu="impl=nccl check=false" --device-library=%commsir_build/lowering/nvvm/device/NcclDevice.bc -o %t.all.ll
// RUN: FileCheck %s --input-file=%t.all.ll --check-prefix=ALL
// RUN: FileCheck %s --input-file=%t.all.ll --check-prefix=LOOSE
// ALL-DAG: asm sideeffect "fence.acquire.sys;", "~{memory}"
// ALL-DAG: asm sideeffect "fence.release.gpu;", "~{memory}"
// ALL-DAG: asm sideeffect "ld.relaxed.gpu.b64 $0, [$1];", "=l,l,~{memory}"
// ALL-DAG: asm sideeffect "st.mmio.relaxed.sys.global.b64 [$0], $1;", "l,l,~{memory}"
// LOOSE-NOT: {{asm "}}
// LOOSE-NOT: {{asm sideeffect "[^"]*", "([^"]*[^}"])?"}}
// LOOSE-NOT: atomicrmw
comms.kernel @rank(%n: memref<1xi64>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %c0 = arith.constant 0 : index
  %rank = comms.rank %world
  %wide = arith.index_cast %rank : index to i64
  %tile = comms.splat %wide : i64 -> tensor<1xi64>
  comms.tile_store %tile, %n[%c0] : tensor<1xi64>, memref<1xi64>
  comms.return
}
