//===- LoopbackRma.cpp - An adapter for GIN on a host that has none -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plug-in of NCCL 2.30 and newer (NCCL_RMA_PLUGIN names the file), for tests.
// It carries the puts and signals that kernels send by GIN from one GPU of a
// host to another through the host's memory, so that such kernels run without
// InfiniBand. With NCCL_LSA_TEAM_SIZE=2, four GPUs are two teams of load/store
// reach, and only this plug-in connects them. NCCL's proxy forwards the
// kernels' requests, and calls `progress` repeatedly.
//
// Every rank has an inbox in shared memory with a slot for each other rank. A
// transfer passes through its slot in pieces. The receiver copies each to its
// destination, then the signal, and answers. So all transfers of one peer
// arrive in order.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <cuda.h>

namespace {

//===----------------------------------------------------------------------===//
// What NCCL and its plug-ins agree on
//===----------------------------------------------------------------------===//

/// ncclResult_t.
enum Result : int { kSuccess = 0, kSystem = 2, kInvalid = 4 };

constexpr int kHostPointer = 1, kCudaPointer = 2;
constexpr uint32_t kIncrement = 1;
/// Of devices that NCCL's proxy drives.
constexpr int kProxy = 2;

/// ncclNetProperties_v12_t.
struct Properties {
  const char *name;
  const char *pciPath;
  uint64_t guid;
  int pointers, isGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxReceives, deviceType, deviceVersion;
  int virtualCount, virtualDevices[8];
  size_t maxPeerBytes, maxCollectiveBytes;
  int maxRequests;
  int16_t rail, plane;
};

/// ncclRmaConfig_v14_t.
struct Config {
  int contexts, trafficClass, stride;
};

/// ncclRma_v14_t.
struct Plugin {
  const char *name;
  int (*init)(void **, uint64_t, void *);
  int (*devices)(int *);
  int (*getProperties)(int, Properties *);
  int (*listen)(void *, int, void *, void **);
  int (*connect)(void *, void **, int, int, void *, void **);
  int (*createContext)(void *, Config *, void **);
  int (*registerMemory)(void *, void *, size_t, int, uint64_t, void **);
  int (*registerDmaBuf)(void *, void *, size_t, int, uint64_t, int, uint64_t,
                        void **);
  int (*deregister)(void *, void *);
  int (*destroyContext)(void *);
  int (*closeColl)(void *);
  int (*closeListen)(void *);
  int (*put)(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t,
             void **);
  int (*putSignal)(void *, int, uint64_t, void *, size_t, uint64_t, void *,
                   uint32_t, uint64_t, void *, uint64_t, uint32_t, bool,
                   void **);
  int (*get)(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t,
             void **);
  int (*flush)(void *, int, void *, uint32_t, void **);
  int (*test)(void *, void *, int *);
  int (*progress)(void *);
  int (*queryError)(void *, bool *);
  int (*finalize)(void *);
};

//===----------------------------------------------------------------------===//
// The driver, where memory is a GPU's
//===----------------------------------------------------------------------===//

struct Driver {
  decltype(&cuPointerGetAttribute) attribute = nullptr;
  decltype(&cuDeviceGet) device = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
  decltype(&cuStreamCreateWithPriority) stream = nullptr;
  decltype(&cuStreamSynchronize) synchronize = nullptr;
  decltype(&cuMemcpyDtoHAsync) out = nullptr;
  decltype(&cuMemcpyHtoDAsync) in = nullptr;
  bool good = false;

  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    good = library;
    auto find = [&](const char *name, auto &function) {
      function = library ? reinterpret_cast<std::decay_t<decltype(function)>>(
                               dlsym(library, name))
                         : nullptr;
      good &= function != nullptr;
    };
    find("cuPointerGetAttribute", attribute);
    find("cuDeviceGet", device);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuCtxPushCurrent_v2", push);
    find("cuCtxPopCurrent_v2", pop);
    find("cuStreamCreateWithPriority", stream);
    find("cuStreamSynchronize", synchronize);
    find("cuMemcpyDtoHAsync_v2", out);
    find("cuMemcpyHtoDAsync_v2", in);
  }
};

const Driver &driver() {
  static Driver functions;
  return functions;
}

/// Copies from and to one GPU, in parallel with kernels that wait for what they
/// bring.
class Gpu {
public:
  bool open(const void *pointer) {
    const Driver &cu = driver();
    if (context || !cu.good)
      return cu.good;
    int ordinal = 0;
    CUdevice device;
    if (cu.attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                     CUdeviceptr(pointer)) ||
        cu.device(&device, ordinal) || cu.retain(&context, device))
      return false;
    cu.push(context);
    bool made = cu.stream(&stream, CU_STREAM_NON_BLOCKING, -100) == 0;
    cu.pop(nullptr);
    return made;
  }
  bool copy(void *to, const void *from, size_t bytes, bool isOut) const {
    const Driver &cu = driver();
    if (!context)
      return false;
    cu.push(context);
    CUresult result = isOut ? cu.out(to, CUdeviceptr(from), bytes, stream)
                            : cu.in(CUdeviceptr(to), from, bytes, stream);
    if (!result)
      result = cu.synchronize(stream);
    cu.pop(nullptr);
    return result == CUDA_SUCCESS;
  }

private:
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

//===----------------------------------------------------------------------===//
// Inboxes
//===----------------------------------------------------------------------===//

constexpr int kMaxRanks = 16;
constexpr size_t kPieceBytes = 1 << 20;

enum State : uint32_t { kEmpty, kFull, kTaken };

/// One piece of a transfer, from one rank.
struct Slot {
  std::atomic<uint32_t> state;
  uint32_t bytes, memory;
  uint64_t offset;
  /// After the last piece; signals come with it.
  uint32_t hasSignal, signalMemory;
  uint64_t signalOffset, signalValue;
  char data[kPieceBytes];
};

struct Inbox {
  Slot slots[kMaxRanks];
};

/// An inbox in this process.
struct Mapping {
  Mapping(int file) {
    void *at = mmap(nullptr, sizeof(Inbox), PROT_READ | PROT_WRITE, MAP_SHARED,
                    file, 0);
    inbox = at == MAP_FAILED ? nullptr : static_cast<Inbox *>(at);
  }
  Mapping(const Mapping &) = delete;
  ~Mapping() {
    if (inbox)
      munmap(inbox, sizeof(Inbox));
    if (owned >= 0)
      close(owned);
  }
  Inbox *inbox = nullptr;
  int owned = -1;
};

/// What ranks tell each other: where the inbox is.
struct Handle {
  int32_t process, file;
};

struct Listener {
  std::shared_ptr<Mapping> mapping;
};

struct Memory {
  uint32_t number;
  char *data;
  size_t bytes;
  bool isGpu;
};

struct Request {
  int peer;
  const Memory *source;
  uint64_t sourceOffset, bytes, sent = 0;
  uint32_t memory, signalMemory;
  uint64_t offset, signalOffset, signalValue;
  bool hasSignal, done = false;
};

/// The ranks that are connected.
struct Coll {
  std::mutex mutex;
  int rank = 0, ranks = 0;
  std::vector<std::shared_ptr<Mapping>> inboxes;
  /// Ranks register in the same order: the numbers agree.
  uint32_t registered = 0;
  std::map<uint32_t, std::unique_ptr<Memory>> memory;
  std::vector<std::deque<Request *>> queues;
  Gpu gpu;
  bool failed = false;
};

struct Context {
  Coll *coll;
};

Result fail(const std::string &what) {
  std::fprintf(stderr, "loopback RMA: %s\n", what.c_str());
  return kSystem;
}

/// Copies into or out of registered memory.
bool copy(Coll &coll, const Memory &memory, uint64_t offset, void *other,
          size_t bytes, bool isOut) {
  if (offset > memory.bytes || bytes > memory.bytes - offset)
    return false;
  char *place = memory.data + offset;
  void *to = isOut ? other : place;
  const void *from = isOut ? place : other;
  if (!memory.isGpu)
    std::memcpy(to, from, bytes);
  return !memory.isGpu || coll.gpu.copy(to, from, bytes, isOut);
}

//===----------------------------------------------------------------------===//
// Sending and receiving
//===----------------------------------------------------------------------===//

/// The first transfer to a peer goes on where its slot is free.
bool sendTo(Coll &coll, int peer) {
  std::deque<Request *> &queue = coll.queues[peer];
  if (queue.empty())
    return true;
  Request &request = *queue.front();
  Slot &slot = coll.inboxes[peer]->inbox->slots[coll.rank];
  uint32_t state = slot.state.load(std::memory_order_acquire);
  if (state == kFull)
    return true;
  if (state == kTaken) {
    slot.state.store(kEmpty, std::memory_order_relaxed);
    request.sent += slot.bytes;
    if (request.sent == request.bytes) {
      request.done = true;
      queue.pop_front();
      return true;
    }
  }
  size_t bytes = std::min<uint64_t>(kPieceBytes, request.bytes - request.sent);
  if (bytes && !copy(coll, *request.source, request.sourceOffset + request.sent,
                     slot.data, bytes, /*isOut=*/true))
    return false;
  slot.bytes = uint32_t(bytes);
  slot.memory = request.memory;
  slot.offset = request.offset + request.sent;
  slot.hasSignal = request.hasSignal && request.sent + bytes == request.bytes;
  slot.signalMemory = request.signalMemory;
  slot.signalOffset = request.signalOffset;
  slot.signalValue = request.signalValue;
  slot.state.store(kFull, std::memory_order_release);
  return true;
}

/// Nobody but this thread changes the signals of a rank.
bool addSignal(Coll &coll, const Memory &memory, const Slot &slot) {
  uint64_t value = 0;
  if (!copy(coll, memory, slot.signalOffset, &value, sizeof(value),
            /*isOut=*/true))
    return false;
  value += slot.signalValue;
  return copy(coll, memory, slot.signalOffset, &value, sizeof(value),
              /*isOut=*/false);
}

bool receiveFrom(Coll &coll, int peer) {
  Slot &slot = coll.inboxes[coll.rank]->inbox->slots[peer];
  if (slot.state.load(std::memory_order_acquire) != kFull)
    return true;
  auto memory = coll.memory.find(slot.memory);
  auto signals = coll.memory.find(slot.signalMemory);
  bool known = (!slot.bytes || memory != coll.memory.end()) &&
               (!slot.hasSignal || signals != coll.memory.end());
  if (!known) // Not registered here yet.
    return true;
  if (slot.bytes && !copy(coll, *memory->second, slot.offset, slot.data,
                          slot.bytes, /*isOut=*/false))
    return false;
  if (slot.hasSignal && !addSignal(coll, *signals->second, slot))
    return false;
  slot.state.store(kTaken, std::memory_order_release);
  return true;
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

int init(void **context, uint64_t, void *) {
  *context = nullptr;
  return kSuccess;
}

int devices(int *count) {
  *count = 1;
  return kSuccess;
}

int getProperties(int, Properties *properties) {
  std::memset(properties, 0, sizeof(*properties));
  properties->name = "loopback";
  properties->guid = 1;
  properties->pointers = kHostPointer | kCudaPointer;
  properties->speed = 100000;
  properties->port = 1;
  properties->maxComms = 1024;
  properties->maxReceives = 8;
  properties->deviceType = kProxy;
  properties->virtualCount = 1;
  properties->maxPeerBytes = properties->maxCollectiveBytes = 1 << 30;
  properties->maxRequests = 1;
  properties->rail = properties->plane = -1;
  return kSuccess;
}

int listenFor(void *, int, void *handle, void **made) {
  int file = memfd_create("commsir-loopback", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Inbox)))
    return fail("no shared memory");
  auto listener = std::make_unique<Listener>();
  listener->mapping = std::make_shared<Mapping>(file);
  listener->mapping->owned = file;
  if (!listener->mapping->inbox)
    return fail("the shared memory could not be mapped");
  Handle where{getpid(), file};
  std::memcpy(handle, &where, sizeof(where));
  *made = listener.release();
  return kSuccess;
}

int closeListen(void *listener) {
  delete static_cast<Listener *>(listener);
  return kSuccess;
}

int connectAll(void *, void **handles, int ranks, int rank, void *listener,
               void **made) {
  if (ranks > kMaxRanks)
    return fail("too many ranks");
  auto coll = std::make_unique<Coll>();
  coll->rank = rank;
  coll->ranks = ranks;
  coll->queues.resize(ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) {
      coll->inboxes.push_back(static_cast<Listener *>(listener)->mapping);
      continue;
    }
    Handle where;
    std::memcpy(&where, handles[peer], sizeof(where));
    std::string path = "/proc/" + std::to_string(where.process) + "/fd/" +
                       std::to_string(where.file);
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
      return fail(path + " cannot be opened: ranks are of one host and user");
    coll->inboxes.push_back(std::make_shared<Mapping>(file));
    close(file);
    if (!coll->inboxes.back()->inbox)
      return fail("the inbox of a peer could not be mapped");
  }
  *made = coll.release();
  return kSuccess;
}

int closeColl(void *coll) {
  delete static_cast<Coll *>(coll);
  return kSuccess;
}

int createContext(void *coll, Config *, void **made) {
  *made = new Context{static_cast<Coll *>(coll)};
  return kSuccess;
}

int destroyContext(void *context) {
  delete static_cast<Context *>(context);
  return kSuccess;
}

int registerMemory(void *where, void *data, size_t bytes, int type, uint64_t,
                   void **made) {
  Coll &coll = *static_cast<Coll *>(where);
  std::lock_guard<std::mutex> lock(coll.mutex);
  bool isGpu = type == kCudaPointer;
  if (isGpu && !coll.gpu.open(data))
    return fail("no driver, or no memory of a GPU");
  auto memory = std::make_unique<Memory>(
      Memory{coll.registered++, static_cast<char *>(data), bytes, isGpu});
  *made = memory.get();
  coll.memory[memory->number] = std::move(memory);
  return kSuccess;
}

int registerDmaBuf(void *coll, void *data, size_t bytes, int type, uint64_t,
                   int, uint64_t flags, void **made) {
  return registerMemory(coll, data, bytes, type, flags, made);
}

int deregister(void *where, void *memory) {
  Coll &coll = *static_cast<Coll *>(where);
  std::lock_guard<std::mutex> lock(coll.mutex);
  coll.memory.erase(static_cast<Memory *>(memory)->number);
  return kSuccess;
}

int enqueue(void *context, Request request, void **made) {
  Coll &coll = *static_cast<Context *>(context)->coll;
  if (request.peer < 0 || request.peer >= coll.ranks)
    return kInvalid;
  std::lock_guard<std::mutex> lock(coll.mutex);
  auto *own = new Request(request);
  coll.queues[request.peer].push_back(own);
  *made = own;
  return kSuccess;
}

uint32_t numberOf(void *memory) {
  return memory ? static_cast<Memory *>(memory)->number : 0;
}

int put(void *context, int, uint64_t sourceOffset, void *source, size_t bytes,
        uint64_t offset, void *memory, uint32_t peer, void **made) {
  return enqueue(context,
                 {int(peer), static_cast<Memory *>(source), sourceOffset, bytes,
                  0, numberOf(memory), 0, offset, 0, 0, false},
                 made);
}

int putSignal(void *context, int, uint64_t sourceOffset, void *source,
              size_t bytes, uint64_t offset, void *memory, uint32_t peer,
              uint64_t signalOffset, void *signals, uint64_t value,
              uint32_t kind, bool, void **made) {
  return enqueue(context,
                 {int(peer), static_cast<Memory *>(source), sourceOffset, bytes,
                  0, numberOf(memory), numberOf(signals), offset, signalOffset,
                  kind == kIncrement ? 1 : value, true},
                 made);
}

/// Nothing here waits in a cache of the host's.
int flush(void *, int, void *, uint32_t, void **request) {
  *request = nullptr;
  return kSuccess;
}

int progressColl(Coll &coll) {
  std::lock_guard<std::mutex> lock(coll.mutex);
  for (int peer = 0; peer < coll.ranks; ++peer)
    if (!coll.failed && (!receiveFrom(coll, peer) || !sendTo(coll, peer))) {
      coll.failed = true;
      fail("a copy failed between ranks " + std::to_string(coll.rank) +
           " and " + std::to_string(peer));
    }
  return coll.failed ? kSystem : kSuccess;
}

int progress(void *context) {
  return progressColl(*static_cast<Context *>(context)->coll);
}

int test(void *where, void *request, int *done) {
  Coll &coll = *static_cast<Coll *>(where);
  if (int result = progressColl(coll))
    return result;
  auto *own = static_cast<Request *>(request);
  std::lock_guard<std::mutex> lock(coll.mutex);
  *done = !own || own->done;
  if (*done)
    delete own;
  return kSuccess;
}

int queryError(void *context, bool *failed) {
  *failed = static_cast<Context *>(context)->coll->failed;
  return kSuccess;
}

int finalize(void *) { return kSuccess; }

} // namespace

// A transfer of no bytes has no piece but the one with its signal: it ends with
// the answer to that one.
extern "C" __attribute__((visibility("default"))) Plugin ncclRmaPlugin_v14 = {
    "loopback",     init,       devices,        getProperties,
    listenFor,      connectAll, createContext,  registerMemory,
    registerDmaBuf, deregister, destroyContext, closeColl,
    closeListen,    put,        putSignal,      /*get=*/nullptr,
    flush,          test,       progress,       queryError,
    finalize};
