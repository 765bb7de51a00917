//===- FakeNccl.cpp - An NCCL without a GPU -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libnccl.so.2 over the driver of FakeCuda.cpp, so that how the
// runtime makes and frees windows and device communicators is tested on any
// machine. Ranks are threads of one process. COMMSIR_FAKE_NCCL names what it
// lacks: "gin" (ncclDevCommCreate refuses it, as NCCL does on a host without
// adapters), "contexts" (it gives none of the GIN contexts), "rank" (the device
// communicator says another rank), "windows" (it is 2.27.7), "memory" (GPU 1
// has none), "register" (GPU 1 refuses windows). Compiled with
// COMMSIR_FAKE_NO_DEVICE_API it has no device communicators.
//
// fakeNcclLog gives the calls that make and free something, in order, of rank
// 0.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/FakeNccl.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

using namespace commsir::fake;

struct ncclComm {
  int rank = 0, ranks = 0;
  Meeting *meeting = nullptr;
};

namespace {

std::mutex mutex;
std::string calls, failure;
/// Of each unique id.
std::map<std::string, Meeting *> meetings;
std::set<const void *> windows, memory, comms;

bool lacks(const char *what) {
  const char *text = std::getenv("COMMSIR_FAKE_NCCL");
  return text && std::string(text) == what;
}

void note(const ncclComm *comm, const std::string &call) {
  std::lock_guard lock(mutex);
  if (comm->rank == 0)
    calls += call + "\n";
}

ncclResult_t refuse(const char *why) {
  std::lock_guard lock(mutex);
  failure = why;
  return ncclInvalidUsage;
}

/// GPU of the context that is current.
int currentDevice() {
  auto *get = reinterpret_cast<int (*)(void **)>(
      dlsym(RTLD_DEFAULT, "cuCtxGetCurrent"));
  void *context = nullptr;
  return get && get(&context) == 0
             ? int(reinterpret_cast<uintptr_t>(context)) - 1
             : -1;
}

/// Every rank says a number; all get all.
bool exchange(ncclComm *comm, uint64_t mine, uint64_t *all) {
  Meeting &meeting = *comm->meeting;
  meeting.said[comm->rank] = mine;
  if (!meet(meeting, comm->ranks))
    return false;
  for (int rank = 0; rank < comm->ranks; ++rank)
    all[rank] = meeting.said[rank];
  return meet(meeting, comm->ranks);
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = lacks("windows") ? 22707 : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t) { return "as asked for"; }
const char *ncclGetLastError(ncclComm_t) { return failure.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::memset(id, 0, sizeof(*id));
  std::lock_guard lock(mutex);
  std::string name = "fake " + std::to_string(meetings.size());
  std::memcpy(id->internal, name.data(), name.size());
  meetings[name] = new Meeting{};
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks,
                                    ncclUniqueId id, int rank, ncclConfig_t *) {
  auto *comm = new ncclComm{rank, ranks, nullptr};
  {
    std::lock_guard lock(mutex);
    comm->meeting = meetings.at(id.internal);
    comms.insert(comm);
  }
  note(comm, "init");
  *made = comm;
  return meet(*comm->meeting, ranks) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  note(comm, "destroy");
  std::lock_guard lock(mutex);
  if (!comms.erase(comm))
    return ncclInvalidArgument;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *device = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **made, size_t bytes) {
  if (lacks("memory") && currentDevice() == 1) {
    refuse("Cuda failure 2 'out of memory'");
    return ncclUnhandledCudaError;
  }
  *made = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*made, 0xAB, bytes);
  std::lock_guard lock(mutex);
  memory.insert(*made);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *pointer) {
  std::lock_guard lock(mutex);
  if (!memory.erase(pointer))
    return ncclInvalidArgument;
  std::free(pointer);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *base, size_t,
                                    ncclWindow_t *made, int) {
  uint64_t all[kMaxRanks] = {};
  if (!exchange(comm, reinterpret_cast<uint64_t>(base), all))
    return ncclSystemError;
  if (lacks("register") && comm->rank == 1)
    return refuse("as asked for");
  auto *window = new FakeWindow{kWindowMark, {}};
  for (int rank = 0; rank < comm->ranks; ++rank)
    window->parts[rank] = reinterpret_cast<char *>(all[rank]);
  note(comm, "window");
  std::lock_guard lock(mutex);
  windows.insert(window);
  *made = reinterpret_cast<ncclWindow_t>(window);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  note(comm, "no window");
  std::lock_guard lock(mutex);
  if (!comms.count(comm) || !windows.erase(window))
    return ncclInvalidArgument;
  auto *own = reinterpret_cast<FakeWindow *>(window);
  own->mark = 0;
  delete own;
  return ncclSuccess;
}

/// As nccl_device.h has it.
struct Team {
  int ranks, rank, stride;
};
Team ncclTeamLsa(ncclComm_t comm) { return {comm->ranks, comm->rank, 1}; }

#ifndef COMMSIR_FAKE_NO_DEVICE_API
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
                               void *made) {
  Requirements wanted;
  std::memcpy(&wanted, requirements, sizeof(wanted));
  if (wanted.mark != kRequirementsMark)
    return refuse("requirements of another release");
  if ((wanted.signals || wanted.counters || wanted.contexts) && lacks("gin"))
    return refuse("GIN not supported.");
  if (lacks("contexts"))
    wanted.contexts = 0;
  uint64_t all[kMaxRanks] = {};
  Meeting *own = comm->rank == 0 ? new Meeting{} : nullptr;
  if (!exchange(comm, reinterpret_cast<uint64_t>(own), all))
    return ncclSystemError;
  DevComm filled{kDevCommMark,
                 comm->rank + (lacks("rank") ? 1 : 0),
                 comm->ranks,
                 wanted,
                 reinterpret_cast<Meeting *>(all[0]),
                 lacks("adapter") ? 5 : 0};
  std::memcpy(made, &filled, sizeof(filled));
  note(comm, "device communicator of " + std::to_string(wanted.lsaBarriers) +
                 " barriers");
  return ncclSuccess;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made) {
  DevComm known;
  std::memcpy(&known, made, sizeof(known));
  note(comm, "no device communicator");
  std::lock_guard lock(mutex);
  return comms.count(comm) && known.mark == kDevCommMark ? ncclSuccess
                                                         : ncclInvalidArgument;
}
#endif

// NCCL's own collectives, which no test calls.
ncclResult_t ncclGroupStart() { return ncclInternalError; }
ncclResult_t ncclGroupEnd() { return ncclInternalError; }
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t,
                           ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclReduceScatter(const void *, void *, size_t, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclAlltoAll(const void *, void *, size_t, ncclDataType_t,
                          ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclBroadcast(const void *, void *, size_t, ncclDataType_t, int,
                           ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}

const char *fakeNcclLog() { return calls.c_str(); }
}
