//===- NcclDevice.cu - The device library over nccl_device.h --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What generated code and the runtime know of NCCL's device API: functions with
// C names, compiled by clang to bitcode for the headers at hand
// (cmake/NcclDevice.cmake), and two small kernels. The layouts that are
// compiled in here belong to one release of NCCL; the runtime compares that
// release with the library that is loaded.
//
//===----------------------------------------------------------------------===//

// nccl_device.h asks for the value of __CUDACC__, which clang leaves empty.
#undef __CUDACC__
#define __CUDACC__ 1

#include <nccl_device.h>

#include <stdint.h>

#define COMMSIR_EXPORT extern "C" __device__ __attribute__((used))

/// Address of byte `offset` of the part of the window that belongs to world
/// rank `peer`. `peer` must be in load/store reach.
COMMSIR_EXPORT void *commsir_nccl_peer_pointer(void *window, uint64_t offset,
                                               int32_t peer) {
  return ncclGetPeerPointer(static_cast<ncclWindow_t>(window), offset, peer);
}

/// As above, `peer` counted inside the team of load/store reach.
COMMSIR_EXPORT void *commsir_nccl_lsa_pointer(void *window, uint64_t offset,
                                              int32_t peer) {
  return ncclGetLsaPointer(static_cast<ncclWindow_t>(window), offset, peer);
}

/// Address of byte `offset` of the calling rank's own part.
COMMSIR_EXPORT void *commsir_nccl_local_pointer(void *window, uint64_t offset) {
  return ncclGetLocalPointer(static_cast<ncclWindow_t>(window), offset);
}

/// Writes the table of a window: the address, as reached from here, of every
/// world rank's part, and null for ranks out of reach. The team of load/store
/// reach is the ranks first … first + size - 1. One thread is enough.
///
/// Entry number `ranks` takes the release of NCCL that this was compiled for,
/// so that the host sees that the kernel ran.
extern "C" __global__ void commsir_resolve_window(void *window, void **table,
                                                  int32_t ranks, int32_t first,
                                                  int32_t size) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    bool reached = rank >= first && rank < first + size;
    table[rank] =
        reached ? commsir_nccl_lsa_pointer(window, 0, rank - first) : nullptr;
  }
  table[ranks] = reinterpret_cast<void *>(uint64_t(NCCL_VERSION_CODE));
}

/// Reads 8 bytes at `offset` of every part of `table`; 0 for ranks out of
/// reach. What each rank wrote there shows whether the table is right.
extern "C" __global__ void commsir_probe_window(void *const *table,
                                                uint64_t offset, uint64_t *out,
                                                int32_t ranks) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const char *part = static_cast<const char *>(table[rank]);
    out[rank] =
        part ? *reinterpret_cast<const volatile uint64_t *>(part + offset) : 0;
  }
}
