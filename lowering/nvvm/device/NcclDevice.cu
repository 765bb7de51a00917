//===- NcclDevice.cu - The device library over nccl_device.h --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What generated code and the runtime know of NCCL's device API: functions with
// C names, compiled for the headers of one release of NCCL (by clang to
// bitcode, cmake/NcclDevice.cmake, or by NVRTC, runtime/jit/cuda), and a few
// small kernels. The layouts that are compiled in here belong to that release;
// the runtime compares it with the library that is loaded.
//
// `comm` is the address of an ncclDevComm in device memory. Peers of GIN are
// world ranks. One thread makes a GIN call; every thread of a CTA makes the
// call of a barrier. COMMSIR_KERNELS_ONLY leaves all out but the kernels.
//
//===----------------------------------------------------------------------===//

#ifdef __clang__
// nccl_device.h asks for the value of __CUDACC__, which clang leaves empty.
#undef __CUDACC__
#define __CUDACC__ 1
#endif

#ifdef __clang__
// Of CUDA's own bitcode library, which a machine that runs kernels lacks.
extern "C" __device__ unsigned int __nv_umulhi(unsigned int a, unsigned int b) {
  return (static_cast<unsigned long long>(a) * b) >> 32;
}
#endif

// Not nccl_device.h, which in later releases brings along reductions of every
// type and the endpoints of newer GPUs.
#include <nccl_device/impl/core__funcs.h>
#include <nccl_device/impl/ptr__funcs.h>
#if __has_include(<nccl_device/host.h>)
// What ncclDevCommCreate takes, from 2.32 on.
#include <nccl_device/host.h>
#endif
#ifndef COMMSIR_KERNELS_ONLY
#include <nccl_device/impl/comm__funcs.h>
#include <nccl_device/impl/gin__funcs.h>
#include <nccl_device/impl/gin_barrier__funcs.h>
#include <nccl_device/impl/lsa_barrier__funcs.h>
#endif

#include <stdint.h>

#define COMMSIR_EXPORT extern "C" __device__ __attribute__((used))

using Comm = ncclDevComm;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

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

// What the runtime's kernels do not need takes seconds to compile.
#ifndef COMMSIR_KERNELS_ONLY

/// Multicast address of byte `offset` of all parts in load/store reach.
COMMSIR_EXPORT void *
commsir_nccl_multimem_pointer(void *window, uint64_t offset, const Comm *comm) {
  return ncclGetLsaMultimemPointer(static_cast<ncclWindow_t>(window), offset,
                                   *comm);
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

COMMSIR_EXPORT int32_t commsir_nccl_world_rank(const Comm *comm) {
  return ncclTeamWorld(*comm).rank;
}

COMMSIR_EXPORT int32_t commsir_nccl_world_size(const Comm *comm) {
  return ncclTeamWorld(*comm).nRanks;
}

COMMSIR_EXPORT int32_t commsir_nccl_lsa_rank(const Comm *comm) {
  return ncclTeamLsa(*comm).rank;
}

COMMSIR_EXPORT int32_t commsir_nccl_lsa_size(const Comm *comm) {
  return ncclTeamLsa(*comm).nRanks;
}

COMMSIR_EXPORT int32_t commsir_nccl_rail_rank(const Comm *comm) {
  return ncclTeamRail(*comm).rank;
}

COMMSIR_EXPORT int32_t commsir_nccl_rail_size(const Comm *comm) {
  return ncclTeamRail(*comm).nRanks;
}

//===----------------------------------------------------------------------===//
// Barriers: CTA `index` of every rank of the team
//===----------------------------------------------------------------------===//

static __device__ cuda::memory_order orderOf(uint32_t orders) {
  return orders ? cuda::memory_order_acq_rel : cuda::memory_order_relaxed;
}

/// Ranks in load/store reach. Not `orders`: memory is not ordered.
COMMSIR_EXPORT void commsir_nccl_lsa_barrier(const Comm *comm, uint32_t index,
                                             uint32_t orders) {
  ncclLsaBarrierSession<ncclCoopCta> session(ncclCoopCta(), *comm,
                                             ncclTeamTagLsa(), index);
  session.sync(ncclCoopCta(), orderOf(orders));
}

/// The two halves. NCCL counts a barrier when its wait ends, so no other one of
/// the same index may come between them.
COMMSIR_EXPORT void commsir_nccl_lsa_barrier_arrive(const Comm *comm,
                                                    uint32_t index,
                                                    uint32_t orders) {
  ncclLsaBarrierSession<ncclCoopCta> session(ncclCoopCta(), *comm,
                                             ncclTeamTagLsa(), index);
  session.arrive(ncclCoopCta(), orderOf(orders));
}

COMMSIR_EXPORT void commsir_nccl_lsa_barrier_wait(const Comm *comm,
                                                  uint32_t index,
                                                  uint32_t orders) {
  ncclLsaBarrierSession<ncclCoopCta> session(ncclCoopCta(), *comm,
                                             ncclTeamTagLsa(), index);
  session.wait(ncclCoopCta(), orderOf(orders));
}

/// What the CTA has put has come to the adapters of its peers, and so comes
/// before the signals that they are sent afterwards. NCCL orders by itself what
/// goes to one peer in one context, and a barrier tells others than those.
static __device__ void finishPuts(const Comm *comm) {
  for (int context = 0; context < int(comm->ginContextCount); ++context)
    ncclGin(*comm, context).flush(ncclCoopCta());
}

static __device__ void meetRail(const Comm *comm, uint32_t index,
                                uint32_t orders) {
  ncclGinBarrierSession<ncclCoopCta> session(ncclCoopCta(), ncclGin(*comm, 0),
                                             ncclTeamTagRail(), index);
  session.sync(ncclCoopCta(), orderOf(orders), ncclGinFenceLevel::Relaxed);
}

/// The ranks that have this rank's place in their load/store reach.
COMMSIR_EXPORT void commsir_nccl_rail_barrier(const Comm *comm, uint32_t index,
                                              uint32_t orders) {
  if (orders)
    finishPuts(comm);
  meetRail(comm, index, orders);
}

/// All ranks: those in reach have come, then those that speak for the others'.
COMMSIR_EXPORT void commsir_nccl_world_barrier(const Comm *comm, uint32_t index,
                                               uint32_t orders) {
  if (orders)
    finishPuts(comm);
  commsir_nccl_lsa_barrier(comm, index, orders);
  meetRail(comm, index, orders);
}

//===----------------------------------------------------------------------===//
// GIN
//===----------------------------------------------------------------------===//

/// Arguments of a put: byte offsets, and bytes.
#define COMMSIR_PUT                                                            \
  const Comm *comm, uint32_t context, int32_t peer, void *dest,                \
      uint64_t destOffset, void *source, uint64_t sourceOffset, uint64_t bytes

template <typename Remote, typename Local>
static __device__ void put(COMMSIR_PUT, Remote remote, Local local) {
  ncclGin(*comm, int(context))
      .put(ncclTeamWorld(*comm), peer, static_cast<ncclWindow_t>(dest),
           destOffset, static_cast<ncclWindow_t>(source), sourceOffset, bytes,
           remote, local);
}

COMMSIR_EXPORT void commsir_nccl_gin_put(COMMSIR_PUT) {
  put(comm, context, peer, dest, destOffset, source, sourceOffset, bytes,
      ncclGin_None{}, ncclGin_None{});
}

/// The counter of this rank grows by one when the source has been read.
COMMSIR_EXPORT void commsir_nccl_gin_put_counted(COMMSIR_PUT,
                                                 uint32_t counter) {
  put(comm, context, peer, dest, destOffset, source, sourceOffset, bytes,
      ncclGin_None{}, ncclGin_CounterInc{counter});
}

/// The peer's signal grows when the data, and that of earlier puts, is there.
COMMSIR_EXPORT void commsir_nccl_gin_put_inc(COMMSIR_PUT, uint32_t signal) {
  put(comm, context, peer, dest, destOffset, source, sourceOffset, bytes,
      ncclGin_SignalInc{signal}, ncclGin_None{});
}

COMMSIR_EXPORT void commsir_nccl_gin_put_add(COMMSIR_PUT, uint32_t signal,
                                             uint64_t value) {
  put(comm, context, peer, dest, destOffset, source, sourceOffset, bytes,
      ncclGin_SignalAdd{signal, value}, ncclGin_None{});
}

COMMSIR_EXPORT void commsir_nccl_gin_signal_inc(const Comm *comm,
                                                uint32_t context, int32_t peer,
                                                uint32_t signal) {
  ncclGin(*comm, int(context))
      .signal(ncclTeamWorld(*comm), peer, ncclGin_SignalInc{signal});
}

COMMSIR_EXPORT void commsir_nccl_gin_signal_add(const Comm *comm,
                                                uint32_t context, int32_t peer,
                                                uint32_t signal,
                                                uint64_t value) {
  ncclGin(*comm, int(context))
      .signal(ncclTeamWorld(*comm), peer, ncclGin_SignalAdd{signal, value});
}

/// Returns when the signal of this rank is at least `least`. Nothing ends it
/// before: NCCL's waits have neither a timeout nor an abort. Every context has
/// signals and counters of its own.
COMMSIR_EXPORT void commsir_nccl_gin_wait_signal(const Comm *comm,
                                                 uint32_t context,
                                                 uint32_t signal,
                                                 uint64_t least) {
  ncclGin(*comm, int(context)).waitSignal(ncclCoopThread(), signal, least);
}

COMMSIR_EXPORT uint64_t commsir_nccl_gin_read_signal(const Comm *comm,
                                                     uint32_t context,
                                                     uint32_t signal) {
  return ncclGin(*comm, int(context)).readSignal(signal);
}

COMMSIR_EXPORT void commsir_nccl_gin_reset_signal(const Comm *comm,
                                                  uint32_t context,
                                                  uint32_t signal) {
  ncclGin(*comm, int(context)).resetSignal(signal);
}

COMMSIR_EXPORT void commsir_nccl_gin_wait_counter(const Comm *comm,
                                                  uint32_t context,
                                                  uint32_t counter,
                                                  uint64_t least) {
  ncclGin(*comm, int(context)).waitCounter(ncclCoopThread(), counter, least);
}

COMMSIR_EXPORT uint64_t commsir_nccl_gin_read_counter(const Comm *comm,
                                                      uint32_t context,
                                                      uint32_t counter) {
  return ncclGin(*comm, int(context)).readCounter(counter);
}

COMMSIR_EXPORT void commsir_nccl_gin_reset_counter(const Comm *comm,
                                                   uint32_t context,
                                                   uint32_t counter) {
  ncclGin(*comm, int(context)).resetCounter(counter);
}

/// The sources of all puts of this context may be written again.
COMMSIR_EXPORT void commsir_nccl_gin_flush(const Comm *comm, uint32_t context) {
  ncclGin(*comm, int(context)).flush(ncclCoopThread());
}

#endif // COMMSIR_KERNELS_ONLY

//===----------------------------------------------------------------------===//
// Kernels of the runtime
//===----------------------------------------------------------------------===//

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

// Host code cannot include the device API, so what the runtime has to know of
// its structures, code that is compiled for the same release says.

#if NCCL_VERSION_CODE >= 22807
#define COMMSIR_HAS_GIN 1
#endif

/// What a device communicator must have (NcclRequirements of runtime/jit/cuda/NcclRequirements.h).
struct CommsirNeeds {
  int32_t lsaBarriers, railBarriers, contexts, signals, counters;
};

/// Writes the structure that ncclDevCommCreate takes, and how large it and what
/// ncclDevCommCreate fills are, in bytes. Later releases want their initialiser
/// (it has the release in it) and to be told how far GIN reaches.
extern "C" __global__ void commsir_require(ncclDevCommRequirements *out,
                                           uint64_t *sizes,
                                           CommsirNeeds needs) {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
  ncclDevCommRequirements requirements = {};
#endif
  requirements.lsaBarrierCount = needs.lsaBarriers;
#ifdef COMMSIR_HAS_GIN
  bool reachesAll = needs.contexts || needs.signals || needs.counters;
  bool usesGin = reachesAll || needs.railBarriers;
  requirements.railGinBarrierCount = needs.railBarriers;
  // A barrier of rails takes the first context.
  requirements.ginContextCount =
      usesGin && needs.contexts < 1 ? 1 : needs.contexts;
  requirements.ginSignalCount = needs.signals;
  requirements.ginCounterCount = needs.counters;
#if NCCL_VERSION_CODE >= 22907
  requirements.ginConnectionType = reachesAll ? NCCL_GIN_CONNECTION_FULL
                                   : usesGin  ? NCCL_GIN_CONNECTION_RAIL
                                              : NCCL_GIN_CONNECTION_NONE;
#else
  requirements.ginForceEnable = usesGin;
#endif
#if NCCL_VERSION_CODE >= 23007
  // Signals are numbers here, never addresses. That a signal comes after all
  // earlier puts stays required, as it is by default.
  requirements.ginVaSignalsRequired = false;
#endif
#endif
  *out = requirements;
  sizes[0] = sizeof(ncclDevCommRequirements);
  sizes[1] = sizeof(ncclDevComm);
}

/// What a device communicator says of itself: rank, ranks, ranks in load/store
/// reach, contexts, signals and counters of GIN, and a kind of adapter for
/// which there is no code in here (ncclNetDeviceType; 0: none).
extern "C" __global__ void commsir_describe_comm(const ncclDevComm *comm,
                                                 int64_t *out) {
  out[0] = comm->rank;
  out[1] = comm->nRanks;
  out[2] = comm->lsaSize;
  out[3] = out[4] = out[5] = out[6] = 0;
#ifdef COMMSIR_HAS_GIN
  out[3] = comm->ginContextCount;
  out[4] = comm->ginSignalCount;
  out[5] = comm->ginCounterCount;
#endif
#if defined(NCCL_GIN_EFA_GDA_ENABLE) && NCCL_VERSION_CODE >= 23102
  for (int i = 0; !NCCL_GIN_EFA_GDA_ENABLE && i < comm->ginConnectionCount; ++i)
    if (comm->ginNetDeviceTypes[i] == NCCL_NET_DEVICE_GIN_EFA_GDA)
      out[6] = NCCL_NET_DEVICE_GIN_EFA_GDA;
#endif
}
