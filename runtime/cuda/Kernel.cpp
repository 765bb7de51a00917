//===- Kernel.cpp - A compiled kernel on one GPU --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Kernel.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <tuple>

using namespace commsir;
using namespace commsir::cuda;
namespace abi = mlir::comms::nvvm;

static llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

/// Clusters above this many CTAs are not portable and must be allowed.
static constexpr int64_t kPortableCluster = 8;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Whether code for `built` runs on a GPU of `chip`: cubins within one major
/// version upwards, PTX on anything newer.
static bool runsOn(llvm::StringRef built, llvm::StringRef chip, bool ptx) {
  unsigned from = 0, to = 0;
  bool special = built.consume_front("sm_") && !built.empty() &&
                 !llvm::isDigit(built.back());
  chip.consume_front("sm_");
  if (special)
    return built.drop_back() == chip;
  if (built.getAsInteger(10, from) || chip.getAsInteger(10, to))
    return false;
  return ptx ? from <= to : from / 10 == to / 10 && from <= to;
}

llvm::Error KernelCode::loadCode() {
  const Driver &cu = device.driver();
  if (!runsOn(kernel.chip(), device.getChip(), kernel.isPtx()))
    return fail("kernel '" + kernel.name() + "' was compiled for " +
                kernel.chip() + ", but GPU " +
                llvm::Twine(device.getOrdinal()) + " is " + device.getChip());
  // The driver writes here what it finds wrong with PTX.
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  std::string what = llvm::formatv("loading kernel '{0}' on GPU {1}",
                                   kernel.name(), device.getOrdinal());
  if (auto error = cu.check(cu.ModuleLoadDataEx(&module, kernel.code().data(),
                                                2, options, values),
                            what)) {
    if (!log[0])
      return error;
    return fail(llvm::toString(std::move(error)) + "\n" + log);
  }
  std::string entry = kernel.entry().str();
  if (auto error =
          cu.check(cu.ModuleGetFunction(&function, module, entry.c_str()),
                   what + ", entry '" + entry + "'"))
    return error;
  return cu.check(cu.FuncLoad(function), what);
}

KernelCode::KernelCode(const Device &device, const jit::CudaKernel &kernel)
    : device(device), kernel(kernel) {
  jit::LaunchShape shape = kernel.shape();
  config.gridDimX = unsigned(shape.blocks * shape.cluster);
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = unsigned(shape.threads);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = unsigned(shape.dynamicShared);
  config.attrs = attributes;
  if (shape.cluster > 1) {
    CUlaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = unsigned(shape.cluster);
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  }
  if (shape.overlap) {
    CUlaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
}

llvm::Error KernelCode::checkResident() {
  const Driver &cu = device.driver();
  jit::LaunchShape shape = kernel.shape();
  if (shape.blocks < 1 || shape.cluster < 1 || shape.threads < 1 ||
      shape.threads > 1024 || shape.cluster > 16 ||
      shape.blocks > (int64_t(1) << 20) || shape.dynamicShared < 0 ||
      shape.dynamicShared > abi::kMaxShared)
    return fail(llvm::formatv("kernel '{0}' asks for {1} blocks of {2} CTAs of "
                              "{3} threads with {4} bytes of dynamic shared "
                              "memory: no GPU has that",
                              kernel.name(), shape.blocks, shape.cluster,
                              shape.threads, shape.dynamicShared)
                    .str());
  if (shape.dynamicShared > 0)
    if (auto error = cu.check(
            cu.FuncSetAttribute(function,
                                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                int(shape.dynamicShared)),
            llvm::formatv("asking for {0} bytes of dynamic shared memory",
                          shape.dynamicShared)
                .str()))
      return error;
  if (shape.cluster > kPortableCluster)
    if (auto error = cu.check(
            cu.FuncSetAttribute(
                function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                1),
            llvm::formatv("clusters of {0} CTAs", shape.cluster).str()))
      return error;
  if (auto error = cu.check(
          cu.FuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
          "cuFuncGetAttribute"))
    return error;

  int fitting = 0;
  if (shape.cluster > 1) {
    if (auto error =
            cu.check(cu.OccupancyMaxActiveClusters(&fitting, function, &config),
                     "cuOccupancyMaxActiveClusters"))
      return error;
    resident = fitting;
  } else {
    if (auto error = cu.check(cu.OccupancyMaxActiveBlocksPerMultiprocessor(
                                  &fitting, function, int(shape.threads),
                                  size_t(shape.dynamicShared)),
                              "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
      return error;
    resident = int64_t(fitting) * device.getMultiprocessors();
  }
  if (shape.blocks <= resident)
    return llvm::Error::success();
  return fail(
      llvm::formatv(
          "kernel '{0}' cannot run as {1} blocks: GPU {2} holds {3} at a time "
          "({4} multiprocessors; a block is {5} CTAs of {6} threads with {7} "
          "registers each). Blocks wait for each other, so all must be "
          "resident at once: use --blocks {3} or fewer, or fewer threads",
          kernel.name(), shape.blocks, device.getOrdinal(), resident,
          device.getMultiprocessors(), shape.cluster, shape.threads, registers)
          .str());
}

llvm::Error KernelCode::layOut() {
  words = abi::kArgumentsOffset / sizeof(uint64_t);
  for (const jit::ArgInfo &argument : kernel.args()) {
    places.push_back(words);
    bool parts = argument.kind == jit::ArgKind::Window ||
                 argument.kind == jit::ArgKind::Signal;
    words += parts ? size_t(kernel.ranks()) : 1;
    bool takesTurns =
        !argument.slots.empty() && argument.slots != abi::kBarrierName;
    words += takesTurns ? 2 : 0;
  }
  if (int64_t(words * sizeof(uint64_t)) == kernel.paramBytes())
    return findNcclArguments();
  return fail(llvm::formatv("kernel '{0}' takes {1} bytes of parameters where "
                            "its arguments give {2}: it needs multicast "
                            "addresses, which are off on this target; choose "
                            "another algorithm",
                            kernel.name(), kernel.paramBytes(),
                            words * sizeof(uint64_t))
                  .str());
}

llvm::Error KernelCode::findNcclArguments() {
  if (!kernel.nccl())
    return llvm::Error::success();
  if (kernel.nccl()->multimem)
    return fail("kernel '" + kernel.name() +
                "' takes multicast addresses of NCCL (comms.multimem), and "
                "NVLink multicast is off here, and not tried out: choose "
                "another algorithm");
  // Signals and counters are numbered each from 0 on.
  uint64_t signals = 0, counters = 0;
  for (auto [number, argument] : llvm::enumerate(kernel.args())) {
    llvm::StringRef name = argument.name;
    if (!argument.hidden || argument.kind != jit::ArgKind::Scalar)
      continue;
    NcclArgument found;
    found.place = places[number];
    if (name != abi::kNcclComm) {
      found.kind = name.consume_front(abi::kNcclWindow)   ? NcclArgument::Window
                   : name.consume_front(abi::kNcclOffset) ? NcclArgument::Offset
                                                          : NcclArgument::First;
      if (found.kind == NcclArgument::First)
        name.consume_front(abi::kNcclFirst);
      int of = kernel.findArg(name);
      if (of < 0)
        return fail("kernel '" + kernel.name() +
                    "' takes an argument that nothing is known of: '" +
                    argument.name + "'");
      found.of = unsigned(of);
    }
    ncclArguments.push_back(found);
  }
  llvm::sort(ncclArguments, [](const NcclArgument &a, const NcclArgument &b) {
    return std::tie(a.of, a.place) < std::tie(b.of, b.place);
  });
  for (NcclArgument &argument : ncclArguments) {
    if (argument.kind != NcclArgument::First)
      continue;
    const jit::ArgInfo &cells = kernel.args()[argument.of];
    uint64_t &next = cells.kind == jit::ArgKind::Signal ? signals : counters;
    argument.first = next;
    next += uint64_t(cells.elements());
  }
  return llvm::Error::success();
}

bool KernelCode::needsDeviceComm() const {
  return llvm::any_of(ncclArguments, [](const NcclArgument &argument) {
    return argument.kind == NcclArgument::Comm;
  });
}

void KernelCode::bindDeviceComm(uint64_t *params, CUdeviceptr comm) const {
  for (const NcclArgument &argument : ncclArguments)
    if (argument.kind == NcclArgument::Comm)
      params[argument.place] = comm;
}

void KernelCode::bindNcclWindow(uint64_t *params, unsigned arg, uint64_t handle,
                                uint64_t offset) const {
  for (const NcclArgument &argument : ncclArguments) {
    if (argument.of != arg)
      continue;
    if (argument.kind == NcclArgument::Window)
      params[argument.place] = handle;
    else if (argument.kind == NcclArgument::Offset)
      params[argument.place] = offset;
  }
}

llvm::Expected<std::unique_ptr<KernelCode>>
KernelCode::load(const Device &device, const jit::CudaKernel &kernel) {
  ContextGuard guard(device.driver(), device.context());
  std::unique_ptr<KernelCode> code(new KernelCode(device, kernel));
  if (auto error = code->loadCode())
    return std::move(error);
  if (auto error = code->checkResident())
    return std::move(error);
  if (auto error = code->layOut())
    return std::move(error);
  return code;
}

KernelCode::~KernelCode() {
  ContextGuard guard(device.driver(), device.context());
  if (module)
    device.driver().ModuleUnload(module);
}

std::vector<uint64_t> KernelCode::makeParams(int rank) const {
  std::vector<uint64_t> params(words);
  abi::Launch launch{};
  launch.rank = uint32_t(rank);
  launch.ranks = uint32_t(kernel.ranks());
  launch.lsaSize = uint32_t(kernel.lsaSize());
  std::memcpy(params.data(), &launch, sizeof(launch));
  for (const NcclArgument &argument : ncclArguments)
    if (argument.kind == NcclArgument::First)
      params[argument.place] = argument.first;
  return params;
}

CUresult KernelCode::launch(const uint64_t *params, CUstream stream) const {
  CUlaunchConfig launchConfig = config;
  launchConfig.hStream = stream;
  void *arguments[] = {const_cast<uint64_t *>(params)};
  return device.driver().LaunchKernelEx(&launchConfig, function, arguments,
                                        nullptr);
}

llvm::Error KernelCode::explain(CUresult result) const {
  return device.driver().check(
      result, llvm::formatv("launching kernel '{0}' on GPU {1}", kernel.name(),
                            device.getOrdinal())
                  .str());
}

//===----------------------------------------------------------------------===//
// State and parameters
//===----------------------------------------------------------------------===//

std::vector<char> commsir::cuda::makeState(const jit::CudaKernel &kernel,
                                           const StateOptions &options,
                                           CUdeviceptr record) {
  jit::LaunchShape shape = kernel.shape();
  abi::State start{};
  start.timeout = toNanoseconds(options.timeout);
  start.spin = std::min<uint64_t>(options.spin, (uint64_t(1) << 31) - 1);
  start.digest = options.digest;
  start.record = record;
  start.grid[0] = uint32_t(shape.blocks);
  start.grid[1] = uint32_t(shape.threads);
  start.grid[2] = uint32_t(shape.cluster);
  auto *bytes = reinterpret_cast<const char *>(&start);
  std::vector<char> result(bytes, bytes + sizeof(start));
  if (options.firstLaunch == 1)
    return result;
  abi::BlockState block{};
  block.epoch = options.firstLaunch - 1;
  block.third = uint32_t(options.firstLaunch % 3) ^ 1;
  bytes = reinterpret_cast<const char *>(&block);
  for (int64_t i = 0; i < shape.blocks; ++i)
    result.insert(result.end(), bytes, bytes + sizeof(block));
  return result;
}

LoadedKernel::LoadedKernel(std::unique_ptr<KernelCode> loaded)
    : device(loaded->getDevice()), code(std::move(loaded)) {}

llvm::Error LoadedKernel::prepare(int rank, const StateOptions &options) {
  const Driver &cu = device.driver();
  auto take = [&](std::optional<Memory> &place, size_t bytes,
                  Memory::Place where) -> llvm::Error {
    auto memory = Memory::allocate(device, bytes, where);
    if (!memory)
      return memory.takeError();
    place.emplace(std::move(*memory));
    return llvm::Error::success();
  };
  const jit::CudaKernel &kernel = code->getKernel();
  if (auto error = take(state, abi::getStateBytes(kernel.shape().blocks),
                        Memory::Place::Device))
    return error;
  if (auto error = take(record, sizeof(ErrorRecord), Memory::Place::PinnedHost))
    return error;
  if (auto error = take(one, sizeof(uint64_t), Memory::Place::PinnedHost))
    return error;
  *static_cast<uint64_t *>(one->host()) = 1;
  std::vector<char> start = makeState(kernel, options, record->address());
  if (auto error =
          cu.check(cu.MemcpyHtoD(state->address(), start.data(), start.size()),
                   "writing a kernel's state"))
    return error;
  if (auto error = cu.check(cu.StreamCreate(&control, CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate"))
    return error;
  params = code->makeParams(rank);
  params[KernelCode::kStatePlace] = state->address();
  // The zeros of Memory::allocate must be there before any stream runs.
  return cu.check(cu.CtxSynchronize(), "writing a kernel's state");
}

llvm::Expected<std::unique_ptr<LoadedKernel>>
LoadedKernel::load(const Device &device, const jit::CudaKernel &kernel,
                   int rank, const StateOptions &options) {
  ContextGuard guard(device.driver(), device.context());
  auto code = KernelCode::load(device, kernel);
  if (!code)
    return code.takeError();
  std::unique_ptr<LoadedKernel> loaded(new LoadedKernel(std::move(*code)));
  if (auto error = loaded->prepare(rank, options))
    return std::move(error);
  return loaded;
}

LoadedKernel::~LoadedKernel() {
  ContextGuard guard(device.driver(), device.context());
  if (control)
    device.driver().StreamDestroy(control);
}

void LoadedKernel::bindParts(unsigned arg, llvm::ArrayRef<CUdeviceptr> parts) {
  for (auto [i, part] : llvm::enumerate(parts))
    params[code->placeOf(arg) + i] = part;
}

void LoadedKernel::bindBase(unsigned arg, CUdeviceptr base) {
  params[code->placeOf(arg)] = base;
}

void LoadedKernel::bindDeviceComm(CUdeviceptr comm) {
  code->bindDeviceComm(params.data(), comm);
}

void LoadedKernel::bindNcclWindow(unsigned arg, uint64_t handle,
                                  uint64_t offset) {
  code->bindNcclWindow(params.data(), arg, handle, offset);
}

void LoadedKernel::bindScalar(unsigned arg, llvm::ArrayRef<char> bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), 8));
  params[code->placeOf(arg)] = value;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

llvm::Error LoadedKernel::launch(CUstream stream) const {
  CUresult result = code->launch(params.data(), stream);
  return result == CUDA_SUCCESS ? llvm::Error::success()
                                : code->explain(result);
}

llvm::Error LoadedKernel::abort() {
  const Driver &cu = device.driver();
  ContextGuard guard(cu, device.context());
  // A stream of its own: the kernel's is held up by the kernel.
  return cu.check(cu.MemcpyHtoDAsync(state->address() + abi::kAbortOffset,
                                     one->host(), sizeof(uint64_t), control),
                  "writing the abort word");
}

std::optional<LoadedKernel::ErrorRecord> LoadedKernel::failure() const {
  const auto *shared = static_cast<const ErrorRecord *>(record->host());
  if (!__atomic_load_n(&shared->valid, __ATOMIC_ACQUIRE))
    return std::nullopt;
  return *shared;
}

std::string
commsir::cuda::describeFailure(const LoadedKernel::ErrorRecord &record) {
  std::string peer = record.peer == abi::kNoPeer
                         ? std::string("a peer")
                         : "rank " + std::to_string(record.peer);
  switch (abi::PollKind(record.kind)) {
  case abi::PollKind::Signal:
    return llvm::formatv("signal from {0}: observed {1}, expected {2}", peer,
                         record.seen, record.wanted);
  case abi::PollKind::Counter:
    return llvm::formatv("counter: observed {0}, expected {1}", record.seen,
                         record.wanted);
  case abi::PollKind::Barrier:
    return llvm::formatv("barrier: {0} has reached {1}, expected {2}", peer,
                         record.seen, record.wanted);
  case abi::PollKind::Packet:
    return llvm::formatv("packet from {0}: observed flag {1}, expected {2}",
                         peer, record.seen, record.wanted);
  case abi::PollKind::Poison:
    return llvm::formatv("data from {0}: nothing has arrived in launch {1}",
                         peer, record.wanted);
  case abi::PollKind::Busy:
    return "another launch ran on the same channels at the same time: launches "
           "of one kernel, and replays of one captured graph, must follow each "
           "other";
  case abi::PollKind::Bounds:
    return llvm::formatv("an access at {0} is outside 0 to {1}",
                         int64_t(record.seen), int64_t(record.wanted));
  }
  return llvm::formatv("unknown failure {0}: observed {1}, expected {2}",
                       record.kind, record.seen, record.wanted);
}
