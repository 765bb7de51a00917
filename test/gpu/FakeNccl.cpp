//===- FakeNccl.cpp - An NCCL without a GPU -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces libnccl.so.2 over the driver of FakeCuda.cpp, so that the tests can
// check on any machine how the runtime makes and frees windows and device
// communicators. Ranks are threads of a process, or processes that share files,
// which they open by each other's numbers. COMMSIR_FAKE_NCCL names a missing
// feature or a fault: "gin" (ncclDevCommCreate refuses it, as NCCL does on a
// host without adapters), "contexts" (there are no GIN contexts), "rank" (the
// device communicator has another rank), "windows" (the version is 2.27.7),
// "memory" (GPU 1 has none), "register" (GPU 1 refuses windows), "start" (rank
// 1 does not join the communicator, and the others learn of it). Compiled with
// COMMSIR_FAKE_NO_DEVICE_API, it has no device communicators.
//
// fakeNcclLog returns, in order, rank 0's calls that make and free something.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/FakeNccl.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace commsir::fake;

struct ncclComm {
  int rank = 0, ranks = 0;
  Meeting *meeting = nullptr;
};

namespace {

std::mutex mutex;
std::string calls, failure;
std::set<const void *> windows, comms;

/// Memory that other processes can reach.
struct Shared {
  int file = -1;
  void *at = nullptr;
  size_t bytes = 0;
};
/// What this process has made; its files stay open for as long.
std::map<const void *, Shared> made;

bool lacks(const char *what) {
  const char *text = std::getenv("COMMSIR_FAKE_NCCL");
  return text && std::string(text) == what;
}

void note(const ncclComm *comm, const std::string &call) {
  std::lock_guard lock(mutex);
  if (comm->rank == 0)
    calls += call + "\n";
}

ncclResult_t refuse(const char *why, ncclResult_t result = ncclInvalidUsage) {
  std::lock_guard lock(mutex);
  failure = why;
  return result;
}

Shared mapFile(int file, size_t bytes) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? Shared{} : Shared{file, at, bytes};
}

/// Zeros; null: there is no memory.
void *share(size_t bytes) {
  int file = memfd_create("fake-nccl", MFD_CLOEXEC);
  Shared one;
  if (file >= 0 && ftruncate(file, off_t(bytes)) == 0)
    one = mapFile(file, bytes);
  if (!one.at) {
    close(file);
    return nullptr;
  }
  std::lock_guard lock(mutex);
  made[one.at] = one;
  return one.at;
}

bool unshare(const void *at) {
  std::lock_guard lock(mutex);
  auto found = made.find(at);
  if (found == made.end())
    return false;
  munmap(found->second.at, found->second.bytes);
  close(found->second.file);
  made.erase(found);
  return true;
}

/// A name of what `share` gave, for any process; 0: it did not give it.
uint64_t nameOf(const void *at) {
  std::lock_guard lock(mutex);
  auto found = made.find(at);
  return found == made.end()
             ? 0
             : uint64_t(getpid()) << 32 | uint32_t(found->second.file);
}

/// What the name stands for, as this process reaches it; null: it is gone.
Shared reach(uint64_t name) {
  auto pid = pid_t(name >> 32);
  int file = int(name & 0xFFFFFFFF);
  if (pid == getpid()) {
    std::lock_guard lock(mutex);
    for (const auto &[at, one] : made)
      if (one.file == file)
        return {-1, one.at, 0};
    return {};
  }
  std::string path =
      "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file);
  int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts{};
  Shared one;
  if (opened >= 0 && fstat(opened, &facts) == 0)
    one = mapFile(opened, size_t(facts.st_size));
  close(opened);
  return one;
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
const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSystemError:
    return "unhandled system error";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInvalidArgument:
    return "invalid argument";
  default:
    return "as asked for";
  }
}
const char *ncclGetLastError(ncclComm_t) { return failure.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::memset(id, 0, sizeof(*id));
  void *meeting = share(sizeof(Meeting));
  if (!meeting)
    return refuse("there is no memory for a unique id", ncclSystemError);
  uint64_t name = nameOf(meeting);
  std::memcpy(id->internal, &name, sizeof(name));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks,
                                    ncclUniqueId id, int rank, ncclConfig_t *) {
  uint64_t name = 0;
  std::memcpy(&name, id.internal, sizeof(name));
  auto *meeting = static_cast<Meeting *>(reach(name).at);
  if (!meeting)
    return refuse("the process that made the unique id is gone, or it is none "
                  "of ncclGetUniqueId",
                  ncclInvalidArgument);
  if (lacks("start") && rank == 1) {
    meeting->broken = 1;
    return refuse("socketConnect: Connect to 192.0.2.1 failed: Connection "
                  "refused",
                  ncclSystemError);
  }
  auto *comm = new ncclComm{rank, ranks, meeting};
  {
    std::lock_guard lock(mutex);
    comms.insert(comm);
  }
  note(comm, "init");
  *made = comm;
  return meet(*meeting, ranks) ? ncclSuccess
                               : refuse("a peer has not come", ncclRemoteError);
}

static ncclResult_t end(ncclComm_t comm, const char *how) {
  note(comm, how);
  std::lock_guard lock(mutex);
  if (!comms.erase(comm))
    return ncclInvalidArgument;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return end(comm, "destroy"); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return end(comm, "abort"); }
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
  const char *none = "Cuda failure 2 'out of memory'";
  *made = nullptr;
  if (!lacks("memory") || currentDevice() != 1)
    *made = share((bytes + 4095) / 4096 * 4096);
  if (!*made)
    return refuse(none, ncclUnhandledCudaError);
  std::memset(*made, 0xAB, bytes);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *pointer) {
  return unshare(pointer) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *base, size_t,
                                    ncclWindow_t *made, int) {
  uint64_t all[kMaxRanks] = {};
  if (!exchange(comm, nameOf(base), all))
    return refuse("a peer has not come", ncclRemoteError);
  if (lacks("register") && comm->rank == 1)
    return refuse("as asked for");
  auto *window = new FakeWindow{kWindowMark, {}, {}};
  for (int rank = 0; rank < comm->ranks; ++rank) {
    Shared part = reach(all[rank]);
    if (!part.at) {
      delete window;
      return refuse("a part of the window is no memory of ncclMemAlloc",
                    ncclInvalidArgument);
    }
    window->parts[rank] = static_cast<char *>(part.at);
    window->mapped[rank] = part.bytes;
  }
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
  for (int rank = 0; rank < comm->ranks; ++rank)
    if (own->mapped[rank])
      munmap(own->parts[rank], own->mapped[rank]);
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
  uint64_t own = comm->rank == 0 ? nameOf(share(sizeof(Meeting))) : 0;
  if (!exchange(comm, own, all))
    return refuse("a peer has not come", ncclRemoteError);
  auto *meeting = static_cast<Meeting *>(reach(all[0]).at);
  if (!meeting)
    return refuse("there is no memory for barriers", ncclSystemError);
  DevComm filled{kDevCommMark, comm->rank + (lacks("rank") ? 1 : 0),
                 comm->ranks,  wanted,
                 meeting,      lacks("adapter") ? 5 : 0};
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
