//===- Communicator.cpp - Ranks that share windows ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Communicator.h"

#include "runtime/cuda/Mapping.h"
#include "runtime/jit/cuda/DeviceLibrary.h"
#include "runtime/jit/cuda/NcclDevice.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <optional>
#include <thread>

using namespace commsir;
using namespace commsir::cuda;
using llvm::createStringError;

namespace {

/// Granularity of NCCL's symmetric memory on all GPUs so far.
constexpr size_t kWindowGranularity = size_t(2) << 20;
/// Seconds that a rank waits for the others of its process.
constexpr double kMeetSeconds = 60;
/// Mark that every rank writes at the end of its part, with its number in the
/// low bits, to verify the table of a window.
constexpr uint64_t kProbeMark = 0xC0335126'00000000;
constexpr size_t kProbeBytes = 256;

llvm::Error fail(const llvm::Twine &text) {
  return createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Resolver
//===----------------------------------------------------------------------===//

/// The kernels of the device library, loaded on one device.
class Resolver {
public:
  explicit Resolver(const Device &device)
      : cu(device.driver()), context(device.context()), chip(device.getChip()) {
  }
  ~Resolver() {
    if (!module)
      return;
    ContextGuard guard(cu, context);
    cu.ModuleUnload(module);
  }

  /// The kernels for windows of `nccl`.
  llvm::Error load(const Nccl &nccl) {
    auto code = commsir::jit::getDeviceCode(
        {nccl.version, nccl.path}, commsir::jit::DevicePart::Kernels, chip,
        commsir::jit::Cache::shared());
    if (!code)
      return code.takeError();
    return load(code->code.data());
  }

  /// The kernels for memory that is not NCCL's: only `probe` is of use.
  llvm::Error load() { return load(getNcclDevicePtx().data()); }

  llvm::Error load(const char *image) {
    if (auto error =
            cu.check(cu.ModuleLoadDataEx(&module, image, 0, nullptr, nullptr),
                     "loading the device library"))
      return error;
    if (auto error = cu.check(
            cu.ModuleGetFunction(&resolve, module, "commsir_resolve_window"),
            "commsir_resolve_window"))
      return error;
    return cu.check(
        cu.ModuleGetFunction(&probe, module, "commsir_probe_window"),
        "commsir_probe_window");
  }

  /// Another of the kernels.
  llvm::Error find(const char *name, CUfunction &function) {
    return cu.check(cu.ModuleGetFunction(&function, module, name), name);
  }

  llvm::Error launch(CUfunction function, void **arguments,
                     const llvm::Twine &what) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    if (auto error = cu.check(
            cu.LaunchKernelEx(&config, function, arguments, nullptr), what))
      return error;
    return cu.check(cu.StreamSynchronize(nullptr), what);
  }

  CUfunction resolve = nullptr, probe = nullptr;

private:
  const Driver &cu;
  CUcontext context;
  std::string chip;
  CUmodule module = nullptr;
};

/// Writes this rank's mark at the end of its part.
llvm::Error writeMark(const Device &device, CUdeviceptr base, size_t bytes,
                      int rank) {
  const Driver &cu = device.driver();
  uint64_t mark = kProbeMark | uint64_t(rank);
  if (auto error = cu.check(
          cu.MemcpyHtoD(base + bytes - kProbeBytes, &mark, sizeof(mark)),
          "writing to a new window"))
    return error;
  return cu.check(cu.StreamSynchronize(nullptr), "writing to a new window");
}

/// Reads every peer's mark through `table`, which lies in device memory.
llvm::Error checkMarks(const Device &device, Resolver &resolver,
                       CUdeviceptr table, llvm::ArrayRef<CUdeviceptr> parts,
                       size_t bytes) {
  int ranks = int(parts.size());
  auto out = Memory::allocate(device, sizeof(uint64_t) * ranks);
  if (!out)
    return out.takeError();
  uint64_t offset = bytes - kProbeBytes;
  CUdeviceptr outAddress = out->address();
  int32_t count = ranks;
  void *arguments[] = {&table, &offset, &outAddress, &count};
  if (auto error = resolver.launch(resolver.probe, arguments,
                                   "reading the parts of a window"))
    return error;
  std::vector<uint64_t> seen(ranks);
  const Driver &cu = device.driver();
  if (auto error = cu.check(
          cu.MemcpyDtoH(seen.data(), outAddress, sizeof(uint64_t) * ranks),
          "reading the parts of a window"))
    return error;
  for (int peer = 0; peer < ranks; ++peer)
    if (parts[peer] && seen[peer] != (kProbeMark | uint64_t(peer)))
      return fail(llvm::formatv("GPU {0} does not reach the window of rank {1} "
                                "at {2:x}: it reads {3:x} there, not {4:x}",
                                device.getOrdinal(), peer, parts[peer],
                                seen[peer], kProbeMark | uint64_t(peer))
                      .str());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//

class NcclWindow final : public Window {
public:
  NcclWindow(const Nccl &nccl, ncclComm_t comm, const Device &device)
      : nccl(nccl), comm(comm), device(device) {}
  void abandon() override {
    handle = nullptr;
    own = 0;
  }
  ~NcclWindow() override {
    ContextGuard guard(device.driver(), device.context());
    if (handle)
      nccl.CommWindowDeregister(comm, handle);
    if (own)
      nccl.MemFree(reinterpret_cast<void *>(own));
  }

  /// Collective: all ranks come to every step, whatever became of the one
  /// before.
  llvm::Error create(Resolver &resolver, size_t wanted, int rank, int ranks,
                     const Agreement &agree) {
    std::string what = llvm::formatv("a window of {0} bytes", wanted);
    if (auto error = agree(what, makeOwn(wanted, rank)))
      return error;
    if (auto error = agree(what, enter())) {
      abandon(); // To leave may wait for ranks that have not come in.
      return error;
    }
    return agree(what, resolve(resolver, rank, ranks));
  }

  int reachSize = 0;
  uint64_t ncclHandle() const override {
    return reinterpret_cast<uint64_t>(handle);
  }

private:
  llvm::Error makeOwn(size_t wanted, int rank) {
    size_t total;
    if (__builtin_add_overflow(wanted, kProbeBytes + kWindowGranularity - 1,
                               &total))
      return fail("a window of " + llvm::Twine(wanted) + " bytes is too large");
    total = total / kWindowGranularity * kWindowGranularity;
    void *memory = nullptr;
    if (auto error =
            nccl.check(nccl.MemAlloc(&memory, total),
                       llvm::formatv("ncclMemAlloc of {0} bytes on GPU {1}",
                                     total, device.getOrdinal())
                           .str(),
                       comm))
      return error;
    own = reinterpret_cast<CUdeviceptr>(memory);
    bytes = total;
    return writeMark(device, own, bytes, rank);
  }

  /// Waits for all ranks, so all marks are written after it.
  llvm::Error enter() {
    if (auto error = nccl.check(
            nccl.CommWindowRegister(comm, reinterpret_cast<void *>(own), bytes,
                                    &handle, NCCL_WIN_COLL_SYMMETRIC),
            "ncclCommWindowRegister", comm))
      return error;
    if (!handle)
      return fail(
          "NCCL gives no symmetric window on these GPUs: they need peer "
          "access and CUDA's virtual memory (is NCCL_CUMEM_ENABLE or "
          "NCCL_WIN_ENABLE 0? NCCL_DEBUG=INFO says more)");
    return llvm::Error::success();
  }

  /// Fills the table by the resolver kernel.
  llvm::Error resolve(Resolver &resolver, int rank, int ranks) {
    Nccl::Team team = nccl.teamLsa(comm);
    int32_t first = rank - team.rank * std::max(team.stride, 1);
    reachSize = team.ranks;
    if (team.stride > 1 || team.ranks < 1 || first < 0 ||
        first + reachSize > ranks)
      return fail(
          llvm::formatv("NCCL's team of load/store reach is not a run of "
                        "ranks: {0} ranks, stride {1}, rank {2} is "
                        "number {3}",
                        team.ranks, team.stride, rank, team.rank)
              .str());
    auto memory = Memory::allocate(device, sizeof(CUdeviceptr) * (ranks + 1));
    if (!memory)
      return memory.takeError();
    CUdeviceptr address = memory->address();
    int32_t count = ranks, size = reachSize;
    ncclWindow_t window = handle;
    void *arguments[] = {&window, &address, &count, &first, &size};
    if (auto error = resolver.launch(resolver.resolve, arguments,
                                     "resolving a window of NCCL"))
      return error;
    const Driver &cu = device.driver();
    table.resize(ranks + 1);
    if (auto error = cu.check(cu.MemcpyDtoH(table.data(), address,
                                            sizeof(CUdeviceptr) * (ranks + 1)),
                              "reading the table of a window"))
      return error;
    if (table.back() != CUdeviceptr(nccl.version))
      return fail("the resolver kernel has not run");
    table.pop_back();
    return checkMarks(device, resolver, address, table, bytes);
  }

  const Nccl &nccl;
  ncclComm_t comm;
  const Device &device;
  ncclWindow_t handle = nullptr;
};

/// Facts that a device communicator reports (commsir_describe_comm).
struct DeviceFacts {
  int64_t rank, ranks, reach, contexts, signals, counters, unknownAdapter;
};

class NcclDeviceComm final : public DeviceComm {
public:
  NcclDeviceComm(const Nccl &nccl, ncclComm_t comm, const Device &device)
      : nccl(nccl), comm(comm), device(device) {}
  void abandon() override { made.clear(); }
  ~NcclDeviceComm() override {
    ContextGuard guard(device.driver(), device.context());
    if (!made.empty())
      nccl.devCommDestroy(comm, made.data());
  }

  /// Collective, as NcclWindow::create.
  llvm::Error create(Resolver &resolver, const jit::NcclRequirements &needs,
                     int rank, int ranks, const Agreement &agree) {
    const char *what = "a device communicator";
    std::vector<char> requirements, filled;
    if (auto error =
            agree(what, prepare(resolver, needs, requirements, filled)))
      return error;
    if (auto error = agree(what, enter(needs, requirements, filled))) {
      abandon();
      return error;
    }
    return agree(what, finish(resolver, needs, rank, ranks));
  }

private:
  llvm::Error prepare(Resolver &resolver, const jit::NcclRequirements &needs,
                      std::vector<char> &requirements,
                      std::vector<char> &filled) {
    if (!nccl.devCommCreate || !nccl.devCommDestroy)
      return fail(nccl.path + " has no ncclDevCommCreate: it was built without "
                              "the device API, which the kernel calls. Name "
                              "another file in COMMSIR_NCCL_LIBRARY, or leave "
                              "impl=nccl out");
    size_t bytes = 0;
    if (auto error = require(resolver, needs, requirements, bytes))
      return error;
    filled.resize(bytes);
    return llvm::Error::success();
  }

  /// Waits for all ranks.
  llvm::Error enter(const jit::NcclRequirements &needs,
                    const std::vector<char> &requirements,
                    std::vector<char> &filled) {
    ncclResult_t result =
        nccl.devCommCreate(comm, requirements.data(), filled.data());
    if (auto error = nccl.check(result, "ncclDevCommCreate", comm)) {
      if (!needs.usesGin())
        return error;
      return fail(llvm::toString(std::move(error)) +
                  ". The kernel has operations with `gin`, for which NCCL "
                  "needs a network adapter that GPUs can drive (InfiniBand or "
                  "RoCE; NCCL_GIN_ENABLE is not 0; NCCL_DEBUG=INFO says "
                  "more): drop `gin` for peers in load/store reach, or run "
                  "the kernel on the CPU world");
    }
    made = std::move(filled);
    return llvm::Error::success();
  }

  llvm::Error finish(Resolver &resolver, const jit::NcclRequirements &needs,
                     int rank, int ranks) {
    if (auto error = upload())
      return error;
    return verify(resolver, needs, rank, ranks);
  }

  /// Code for NCCL's release writes the structure that it takes.
  llvm::Error require(Resolver &resolver, const jit::NcclRequirements &needs,
                      std::vector<char> &requirements, size_t &bytes) {
    constexpr size_t most = 4096;
    CUfunction function = nullptr;
    if (auto error = resolver.find("commsir_require", function))
      return error;
    auto memory = Memory::allocate(device, 2 * sizeof(uint64_t) + most);
    if (!memory)
      return memory.takeError();
    CUdeviceptr sizes = memory->address(), out = sizes + 2 * sizeof(uint64_t);
    int32_t wanted[] = {int32_t(needs.lsaBarriers), int32_t(needs.railBarriers),
                        int32_t(needs.contexts), int32_t(needs.signals),
                        int32_t(needs.counters)};
    void *arguments[] = {&out, &sizes, wanted};
    const char *what = "writing what a device communicator needs";
    if (auto error = resolver.launch(function, arguments, what))
      return error;
    std::vector<char> all(2 * sizeof(uint64_t) + most);
    const Driver &cu = device.driver();
    if (auto error =
            cu.check(cu.MemcpyDtoH(all.data(), sizes, all.size()), what))
      return error;
    uint64_t known[2];
    std::memcpy(known, all.data(), sizeof(known));
    if (!known[0] || known[0] > most || !known[1] || known[1] > (1 << 20))
      return fail(llvm::formatv("the kernel that describes NCCL's structures "
                                "has not run: it says {0} and {1} bytes",
                                known[0], known[1])
                      .str());
    requirements.assign(all.begin() + sizeof(known),
                        all.begin() + sizeof(known) + known[0]);
    bytes = known[1];
    return llvm::Error::success();
  }

  llvm::Error upload() {
    auto allocated = Memory::allocate(device, made.size());
    if (!allocated)
      return allocated.takeError();
    memory.emplace(std::move(*allocated));
    place = memory->address();
    const Driver &cu = device.driver();
    const char *what = "copying a device communicator";
    if (auto error =
            cu.check(cu.MemcpyHtoD(place, made.data(), made.size()), what))
      return error;
    return cu.check(cu.StreamSynchronize(nullptr), what);
  }

  /// Whether device code finds in it what was asked for.
  llvm::Error verify(Resolver &resolver, const jit::NcclRequirements &needs,
                     int rank, int ranks) {
    CUfunction function = nullptr;
    if (auto error = resolver.find("commsir_describe_comm", function))
      return error;
    auto out = Memory::allocate(device, sizeof(DeviceFacts));
    if (!out)
      return out.takeError();
    CUdeviceptr address = out->address();
    void *arguments[] = {&place, &address};
    const char *what = "reading a device communicator";
    if (auto error = resolver.launch(function, arguments, what))
      return error;
    DeviceFacts facts{};
    const Driver &cu = device.driver();
    if (auto error =
            cu.check(cu.MemcpyDtoH(&facts, address, sizeof(facts)), what))
      return error;
    if (facts.rank != rank || facts.ranks != ranks)
      return fail(llvm::formatv("NCCL's device communicator says that it is "
                                "rank {0} of {1}, not {2} of {3}: its code is "
                                "of another release",
                                facts.rank, facts.ranks, rank, ranks)
                      .str());
    if (needs.reach && facts.reach != needs.reach)
      return fail(llvm::formatv("the kernel asks NCCL for teams of load/store "
                                "reach of {0} ranks, and NCCL's have {1}: give "
                                "the kernel lsa_size = {1}, or NCCL, where it "
                                "is newer than 2.28, the variable "
                                "NCCL_LSA_TEAM_SIZE={0}",
                                needs.reach, facts.reach)
                      .str());
    if (needs.usesGin() && facts.unknownAdapter)
      return fail(llvm::formatv("NCCL has chosen an adapter of kind {0} for "
                                "GIN, for which NVRTC cannot compile NCCL's "
                                "device code: let NCCL's proxy drive it "
                                "(NCCL_GIN_TYPE=2), or drop `gin` for peers in "
                                "load/store reach",
                                facts.unknownAdapter)
                      .str());
    if (facts.contexts >= needs.contexts && facts.signals >= needs.signals &&
        facts.counters >= needs.counters)
      return llvm::Error::success();
    return fail(
        llvm::formatv("the kernel needs {0} GIN contexts, {1} signals and {2} "
                      "counters; NCCL gives {3}, {4} and {5} "
                      "(NCCL_GIN_NCONTEXTS raises the first)",
                      needs.contexts, needs.signals, needs.counters,
                      facts.contexts, facts.signals, facts.counters)
            .str());
  }

  const Nccl &nccl;
  ncclComm_t comm;
  const Device &device;
  /// The ncclDevComm; empty: there is none.
  std::vector<char> made;
  std::optional<Memory> memory;
};

class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(const Nccl &nccl, const Device &where, Agreement how)
      : nccl(nccl), resolver(where) {
    device = &where;
    agreement = std::move(how);
  }
  ~NcclCommunicator() override {
    if (!comm || !owned)
      return;
    ContextGuard guard(device->driver(), device->context());
    nccl.CommDestroy(comm);
  }

  bool endsTogether() const override { return comm && owned; }

  /// NCCL's own threads and sockets end; its memory is lost. Not waited for,
  /// because that may be for a peer that is gone.
  void abandon() override {
    if (!comm || !owned)
      return;
    auto thread = startThread(
        [abort = nccl.CommAbort, comm = comm, &cu = device->driver()] {
          RelaxedCaptureGuard outside(cu);
          abort(comm);
        });
    if (thread.joinable())
      thread.detach();
    comm = nullptr;
  }

  llvm::Error initialize(const ncclUniqueId &id, int size, int number) {
    const char *what = "starting NCCL";
    llvm::Error ready = checkDeviceLibrary(nccl);
    if (!ready)
      ready = resolver.load(nccl);
    if (auto error = agree(what, std::move(ready)))
      return error;
    ranks = size;
    rank = number;
    owned = true;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    llvm::Error entered = nccl.check(
        nccl.CommInitRankConfig(&comm, size, id, number, &config),
        llvm::formatv("ncclCommInitRankConfig of rank {0} of {1}", number, size)
            .str());
    auto error = agree(what, std::move(entered));
    if (error)
      abandon();
    return error;
  }

  llvm::Error adopt(ncclComm_t existing) {
    if (auto error = resolver.load(nccl))
      return error;
    comm = existing;
    int ordinal = 0;
    for (auto [result, what] :
         {std::pair(nccl.CommCount(comm, &ranks), "ncclCommCount"),
          std::pair(nccl.CommUserRank(comm, &rank), "ncclCommUserRank"),
          std::pair(nccl.CommCuDevice(comm, &ordinal), "ncclCommCuDevice")})
      if (auto error = nccl.check(result, what, comm))
        return error;
    if (ordinal != device->getOrdinal())
      return fail(
          llvm::formatv("the communicator belongs to GPU {0}, not to GPU "
                        "{1}",
                        ordinal, device->getOrdinal())
              .str());
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) override {
    ContextGuard guard(device->driver(), device->context());
    auto window = std::make_unique<NcclWindow>(nccl, comm, *device);
    if (auto error = window->create(resolver, bytes, rank, ranks, agreement))
      return std::move(error);
    reachSize = window->reachSize;
    return window;
  }

  llvm::Expected<std::unique_ptr<DeviceComm>>
  createDeviceComm(const jit::NcclRequirements &needs) override {
    ContextGuard guard(device->driver(), device->context());
    auto made = std::make_unique<NcclDeviceComm>(nccl, comm, *device);
    if (auto error = made->create(resolver, needs, rank, ranks, agreement))
      return std::move(error);
    return made;
  }

private:
  const Nccl &nccl;
  Resolver resolver;
  ncclComm_t comm = nullptr;
  bool owned = false;
};

//===----------------------------------------------------------------------===//
// One process, no NCCL
//===----------------------------------------------------------------------===//

class LocalWindow final : public Window {
public:
  explicit LocalWindow(Memory allocated) : memory(std::move(allocated)) {
    own = memory.address();
    bytes = memory.size();
  }
  void setTable(llvm::ArrayRef<uint64_t> addresses) {
    table.assign(addresses.begin(), addresses.end());
  }

private:
  Memory memory;
};

class LocalCommunicator final : public Communicator {
public:
  LocalCommunicator(const Device &where, int number, int size,
                    std::shared_ptr<Exchange> group)
      : resolver(where), group(std::move(group)) {
    device = &where;
    rank = number;
    ranks = reachSize = size;
    agreement = makeAgreement(this->group, number);
  }

  llvm::Error enableAccess(llvm::ArrayRef<const Device *> devices) {
    const Driver &cu = device->driver();
    ContextGuard guard(cu, device->context());
    if (auto error = resolver.load())
      return error;
    for (const Device *peer : devices) {
      if (peer == device)
        continue;
      int possible = 0;
      if (auto error =
              cu.check(cu.DeviceCanAccessPeer(&possible, device->handle(),
                                              peer->handle()),
                       "cuDeviceCanAccessPeer"))
        return error;
      if (!possible)
        return fail(llvm::formatv(
                        "GPU {0} has no peer access to GPU {1}: kernels cannot "
                        "reach its memory. Choose GPUs that NVLink or PCIe "
                        "peer-to-peer joins (nvidia-smi topo -p2p r)",
                        device->getOrdinal(), peer->getOrdinal())
                        .str());
      CUresult result = cu.CtxEnablePeerAccess(peer->context(), 0);
      if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        continue;
      if (auto error = cu.check(result, "cuCtxEnablePeerAccess"))
        return error;
    }
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) override {
    size_t total;
    if (__builtin_add_overflow(bytes, 2 * kProbeBytes - 1, &total))
      return fail("a window of " + llvm::Twine(bytes) + " bytes is too large");
    total = total / kProbeBytes * kProbeBytes;
    ContextGuard guard(device->driver(), device->context());
    std::unique_ptr<LocalWindow> window;
    std::string what = llvm::formatv("a window of {0} bytes", bytes);
    if (auto error = agree(what, makeOwn(total, window)))
      return std::move(error);
    auto all = group->all(rank, window->base(), kMeetSeconds);
    if (!all)
      return all.takeError();
    window->setTable(*all);
    if (auto error = agree(what, check(*window, total)))
      return std::move(error);
    return window;
  }

private:
  llvm::Error makeOwn(size_t total, std::unique_ptr<LocalWindow> &window) {
    auto memory = Memory::allocate(*device, total);
    if (!memory)
      return memory.takeError();
    window = std::make_unique<LocalWindow>(std::move(*memory));
    return writeMark(*device, window->base(), total, rank);
  }

  llvm::Error check(const LocalWindow &window, size_t total) {
    size_t bytes = sizeof(CUdeviceptr) * ranks;
    auto table = Memory::allocate(*device, bytes);
    if (!table)
      return table.takeError();
    const Driver &cu = device->driver();
    if (auto error = cu.check(
            cu.MemcpyHtoD(table->address(), window.parts().data(), bytes),
            "writing the table of a window"))
      return error;
    return checkMarks(*device, resolver, table->address(), window.parts(),
                      total);
  }

  Resolver resolver;
  std::shared_ptr<Exchange> group;
};

//===----------------------------------------------------------------------===//
// Ranks of one host, no NCCL
//===----------------------------------------------------------------------===//

class SharedWindow final : public Window {
public:
  SharedWindow(const Device &device, Mesh &mesh, double timeout)
      : device(device), mesh(mesh), timeout(timeout) {}
  void abandon() override {
    new std::vector<Mapping>(std::move(mappings)); // Peers may still run.
    mappings.clear();
  }

  /// All ranks come to every step, whatever became of the one before.
  llvm::Error create(Resolver &resolver, size_t wanted) {
    std::string what = llvm::formatv("a window of {0} bytes", wanted);
    File file;
    if (auto error = mesh.agree(what, makeOwn(wanted, file), timeout))
      return error;
    auto files = mesh.exchange(what, file, timeout);
    if (!files)
      return files.takeError();
    if (auto error = mesh.agree(what, openParts(*files), timeout))
      return error;
    return mesh.agree(what, checkParts(resolver), timeout);
  }

private:
  llvm::Error makeOwn(size_t wanted, File &file) {
    const Driver &cu = device.driver();
    CUmemAllocationProp properties = Mapping::describe(device);
    size_t grain = 0;
    if (auto error = cu.check(
            cu.MemGetAllocationGranularity(
                &grain, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
            "cuMemGetAllocationGranularity"))
      return error;
    size_t total;
    if (__builtin_add_overflow(wanted, kProbeBytes + grain - 1, &total))
      return fail("a window of " + llvm::Twine(wanted) + " bytes is too large");
    bytes = total / grain * grain;
    Mapping mapping(cu, device.context());
    if (auto error = mapping.create(device, bytes))
      return error;
    if (auto error = mapping.map(device, mesh.getRank()))
      return error;
    auto shared = mapping.share();
    if (!shared)
      return shared.takeError();
    file = std::move(*shared);
    own = mapping.get();
    mappings.push_back(std::move(mapping));
    return writeMark(device, own, bytes, mesh.getRank());
  }

  llvm::Error openParts(llvm::ArrayRef<File> files) {
    for (int peer = 0; peer < mesh.getRanks(); ++peer) {
      if (peer == mesh.getRank()) {
        table.push_back(own);
        continue;
      }
      Mapping mapping(device.driver(), device.context());
      if (auto error = mapping.open(files[peer], bytes, peer))
        return error;
      if (auto error = mapping.map(device, peer))
        return error;
      table.push_back(mapping.get());
      mappings.push_back(std::move(mapping));
    }
    return llvm::Error::success();
  }

  llvm::Error checkParts(Resolver &resolver) {
    size_t size = sizeof(CUdeviceptr) * table.size();
    auto memory = Memory::allocate(device, size);
    if (!memory)
      return memory.takeError();
    const Driver &cu = device.driver();
    if (auto error =
            cu.check(cu.MemcpyHtoD(memory->address(), table.data(), size),
                     "writing the table of a window"))
      return error;
    return checkMarks(device, resolver, memory->address(), table, bytes);
  }

  const Device &device;
  Mesh &mesh;
  double timeout;
  std::vector<Mapping> mappings;
};

class SharedCommunicator final : public Communicator {
public:
  SharedCommunicator(const Device &where, Mesh &mesh, double timeout)
      : resolver(where), mesh(mesh), timeout(timeout) {
    device = &where;
    rank = mesh.getRank();
    ranks = reachSize = mesh.getRanks();
    agreement = [&mesh, timeout](llvm::StringRef what, llvm::Error mine) {
      return mesh.agree(what, std::move(mine), timeout);
    };
  }
  llvm::Error load() { return resolver.load(); }

  llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) override {
    ContextGuard guard(device->driver(), device->context());
    auto window = std::make_unique<SharedWindow>(*device, mesh, timeout);
    if (auto error = window->create(resolver, bytes))
      return std::move(error);
    return window;
  }

private:
  Resolver resolver;
  Mesh &mesh;
  double timeout;
};

} // namespace

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

Agreement commsir::cuda::makeAgreement(std::shared_ptr<Exchange> meeting,
                                       int rank) {
  return [meeting = std::move(meeting), rank](llvm::StringRef what,
                                              llvm::Error mine) {
    return meeting->agree(rank, what, std::move(mine), kMeetSeconds);
  };
}

llvm::Expected<std::unique_ptr<DeviceComm>>
Communicator::createDeviceComm(const jit::NcclRequirements &) {
  return fail("the kernel calls NCCL's device library, and the windows are not "
              "NCCL's: take them (--windows nccl), with two ranks or more, or "
              "leave impl=nccl out");
}

llvm::Expected<jit::NcclInstallation> commsir::cuda::findNccl() {
  auto nccl = Nccl::get();
  if (!nccl)
    return nccl.takeError();
  return jit::NcclInstallation{(*nccl)->version, (*nccl)->path};
}

llvm::Error commsir::cuda::checkDeviceLibrary(const Nccl &nccl) {
  return commsir::jit::checkDeviceCode({nccl.version, nccl.path});
}

llvm::Expected<std::unique_ptr<Communicator>>
Communicator::create(const Device &device, const ncclUniqueId &id, int ranks,
                     int rank, Agreement agreement) {
  auto nccl = Nccl::get();
  if (!nccl)
    return agreement("starting NCCL", nccl.takeError());
  ContextGuard guard(device.driver(), device.context());
  auto result =
      std::make_unique<NcclCommunicator>(**nccl, device, std::move(agreement));
  if (auto error = result->initialize(id, ranks, rank))
    return std::move(error);
  return result;
}

llvm::Expected<std::unique_ptr<Communicator>>
Communicator::adopt(const Device &device, ncclComm_t comm,
                    Agreement agreement) {
  auto nccl = Nccl::get();
  if (!nccl)
    return nccl.takeError();
  if (auto error = checkDeviceLibrary(**nccl))
    return std::move(error);
  ContextGuard guard(device.driver(), device.context());
  auto result =
      std::make_unique<NcclCommunicator>(**nccl, device, std::move(agreement));
  if (auto error = result->adopt(comm))
    return std::move(error);
  return result;
}

llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
Communicator::createLocal(llvm::ArrayRef<const Device *> devices) {
  auto group = std::make_shared<Exchange>(int(devices.size()));
  std::vector<std::unique_ptr<Communicator>> result;
  for (auto [rank, device] : llvm::enumerate(devices)) {
    auto one = std::make_unique<LocalCommunicator>(*device, int(rank),
                                                   int(devices.size()), group);
    if (auto error = one->enableAccess(devices))
      return std::move(error);
    result.push_back(std::move(one));
  }
  return result;
}

llvm::Expected<std::unique_ptr<Communicator>>
Communicator::createShared(const Device &device, Mesh &mesh, double timeout) {
  const Driver &cu = device.driver();
  ContextGuard guard(cu, device.context());
  int possible = 0;
  llvm::Error error = cu.check(
      cu.DeviceGetAttribute(
          &possible,
          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
          device.handle()),
      "cuDeviceGetAttribute");
  if (!error && !possible)
    error = fail(llvm::formatv("GPU {0} cannot share memory between processes "
                               "as files: take NCCL's windows, or run the "
                               "ranks as threads of one process",
                               device.getOrdinal())
                     .str());
  auto result = std::make_unique<SharedCommunicator>(device, mesh, timeout);
  if (!error)
    error = result->load();
  if (auto failure = mesh.agree("sharing memory", std::move(error), timeout))
    return std::move(failure);
  return result;
}
