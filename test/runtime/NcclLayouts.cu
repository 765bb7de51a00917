//===- NcclLayouts.cu - The layouts of NCCL's structures ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVRTC over the replacements of system headers, and clang over CUDA's own
// headers, must agree (test/integration/another-nccl.sh). That test puts the
// includes of NcclDevice.cu before this text.
//
//===----------------------------------------------------------------------===//

#ifdef __CUDACC_RTC__
#define PLACE(type, member) uint64_t(__INTADDR__(&((type *)0)->member))
#else
#define PLACE(type, member) __builtin_offsetof(type, member)
#endif

extern "C" __device__ uint64_t commsir_layouts[] = {
    NCCL_VERSION_CODE,
    sizeof(ncclDevCommRequirements),
    PLACE(ncclDevCommRequirements, lsaBarrierCount),
    PLACE(ncclDevCommRequirements, railGinBarrierCount),
    PLACE(ncclDevCommRequirements, ginContextCount),
    PLACE(ncclDevCommRequirements, ginCounterCount),
    sizeof(ncclDevComm),
    alignof(ncclDevComm),
    PLACE(ncclDevComm, lsaSize),
    PLACE(ncclDevComm, resourceWindow_inlined),
    PLACE(ncclDevComm, lsaBarrier),
    PLACE(ncclDevComm, railGinBarrier),
    PLACE(ncclDevComm, ginHandles),
    PLACE(ncclDevComm, ginSignalCount),
    PLACE(ncclDevComm, ginSignalShadows),
    sizeof(ncclWindow_vidmem),
    PLACE(ncclWindow_vidmem, stride4G),
    PLACE(ncclWindow_vidmem, ginOffset4K),
    // What adapters and NCCL's proxy share with the GPU, bit fields and packed
    // structures among it.
    sizeof(ncclGinProxyGpuCtx_t),
    PLACE(ncclGinProxyGpuCtx_t, queues),
    PLACE(ncclGinProxyGpuCtx_t, signals),
    sizeof(ncclGinProxyGfd_t),
    alignof(ncclGinProxyGfd_t),
    sizeof(ncclGinGdakiGPUContext),
    sizeof(doca_gpu_dev_verbs_qp),
    alignof(doca_gpu_dev_verbs_qp),
    sizeof(doca_gpu_dev_verbs_cq),
#if NCCL_VERSION_CODE >= 22907
    PLACE(ncclDevCommRequirements, ginConnectionType),
    PLACE(ncclDevComm, abortFlag),
#endif
#if NCCL_VERSION_CODE >= 23007
    PLACE(ncclDevCommRequirements, ginVaSignalsRequired),
    PLACE(ncclWindow_vidmem, numSegments),
    sizeof(gpi_gpu_channel_t),
    sizeof(gpi_gfd_t),
#endif
#if NCCL_VERSION_CODE >= 23102
    PLACE(ncclDevCommRequirements, ginType),
    PLACE(ncclDevComm, ginConnectionStride),
#endif
};
