// Every algorithm and protocol over NCCL's windows and barriers, for all chips:
// one kernel, in which no call is left.
// REQUIRES: ptxas
// RUN: %python %S/../ptx/sweep.py %ptxas %s --device-library %commsir_build/lowering/nvvm/device/NcclDevice.bc --each "impl=nccl ranks=4 blocks=2 check=false threads=64" --each "algorithm=one_shot|algorithm=two_shot|algorithm=ring|algorithm=permutation" --each "protocol=pull|protocol=push|protocol=ll|protocol=lamport" | FileCheck %s
// RUN: %python %S/../ptx/sweep.py %ptxas %s --device-library %commsir_build/lowering/nvvm/device/NcclDevice.bc --each "impl=nccl ranks=2 blocks=2 check=false algorithm=one_shot protocol=push" --each "threads=64|threads=256" --each "chip=sm_80|chip=sm_100" | FileCheck %s --check-prefix=CHIPS
// RUN: comms-translate --comms-to-ptx %s --gpu="impl=nccl ranks=4 blocks=2 threads=64 algorithm=one_shot protocol=pull" --device-library=%commsir_build/lowering/nvvm/device/NcclDevice.bc | FileCheck %s --check-prefix=PTX
// CHECK: 16 variants assemble
// CHIPS: 4 variants assemble

// Accesses are as wide, and as plainly global, as those of generated addresses.
// PTX-NOT: call{{.*}}commsir_nccl
// PTX: ld.global.v4
// PTX: st.global.v4
// PTX-NOT: {{(ld|st)}}.v4
comms.kernel @sum(%x: !comms.window<1024xf32>, %y: !comms.window<1024xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1024xf32>) outs(%y : !comms.window<1024xf32>)
  comms.return
}
