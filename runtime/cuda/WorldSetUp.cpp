//===- WorldSetUp.cpp - A world before its first run ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Seconds.h"
#include "runtime/cuda/WorldState.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;

template <typename... Values>
static llvm::Error fail(const char *format, Values &&...values) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Values>(values)...).str());
}

static bool isShared(const jit::ArgInfo &argument) {
  return argument.kind == jit::ArgKind::Window ||
         argument.kind == jit::ArgKind::Signal;
}

llvm::Error WorldLayout::compute(llvm::ArrayRef<jit::ArgInfo> arguments) {
  constexpr size_t alignment = mlir::comms::nvvm::kAlignment;
  for (const jit::ArgInfo &argument : arguments) {
    size_t &total = isShared(argument) ? windowBytes : memoryBytes;
    offsets.push_back(total);
    if (argument.kind == jit::ArgKind::Scalar)
      continue;
    size_t bytes = argument.bytes(), end;
    if (__builtin_add_overflow(total, bytes, &end) ||
        __builtin_add_overflow(end, alignment - 1, &end))
      return fail("argument '{0}' is too large", argument.name);
    total = end / alignment * alignment;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Each rank alone
//===----------------------------------------------------------------------===//

llvm::Error World::Impl::openDevice(WorldRank &rank, int number) {
  int ordinal = options.devices.empty() ? number : options.devices[number];
  auto device = Device::open(ordinal);
  if (!device)
    return device.takeError();
  rank.device = std::make_unique<Device>(std::move(*device));
  return llvm::Error::success();
}

llvm::Error World::Impl::checkMemory(const Device &device) const {
  const Driver &cu = device.driver();
  size_t free = 0, total = 0, needed = 0;
  if (auto error = cu.check(cu.MemGetInfo(&free, &total), "cuMemGetInfo"))
    return error;
  if (!__builtin_add_overflow(layout.windowBytes, layout.memoryBytes,
                              &needed) &&
      needed <= free)
    return llvm::Error::success();
  return fail("the kernel needs {0} MiB on each GPU for its arguments and "
              "channels; GPU {1} has {2} MiB free of {3}",
              (layout.windowBytes >> 20) + (layout.memoryBytes >> 20) + 1,
              device.getOrdinal(), free >> 20, total >> 20);
}

/// Prepares what needs no peer: code, streams, memory.
llvm::Error World::Impl::prepare(WorldRank &rank, int number) {
  if (auto error = checkMemory(*rank.device))
    return error;
  StateOptions state;
  state.timeout = options.timeout;
  state.firstLaunch = uint64_t(options.firstLaunch);
  auto loaded = LoadedKernel::load(*rank.device, kernel, number, state);
  if (!loaded)
    return loaded.takeError();
  rank.kernel = std::move(*loaded);
  if (auto error = rank.stream.create(rank.device->driver()))
    return error;
  auto memory = Memory::allocate(*rank.device, layout.memoryBytes);
  if (!memory)
    return memory.takeError();
  rank.memory.emplace(std::move(*memory));
  rank.host.resize(kernel.args().size());
  for (auto [i, argument] : llvm::enumerate(kernel.args()))
    if (!argument.hidden && argument.kind != jit::ArgKind::Scalar)
      rank.host[i].resize(argument.bytes());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What joins the ranks
//===----------------------------------------------------------------------===//

llvm::Error World::Impl::usePlain(const llvm::Twine &why) {
  std::vector<const Device *> devices;
  for (WorldRank &rank : states)
    devices.push_back(rank.device.get());
  auto communicators = Communicator::createLocal(devices);
  if (!communicators)
    return communicators.takeError();
  for (auto [rank, communicator] : llvm::zip(states, *communicators))
    rank.communicator = std::move(communicator);
  windowsNote = ("plain device memory, peer access (" + why + ")").str();
  return llvm::Error::success();
}

llvm::Error World::Impl::useNccl() {
  auto nccl = Nccl::get();
  if (!nccl)
    return nccl.takeError();
  if (auto error = checkDeviceLibrary(**nccl))
    return error;
  {
    ContextGuard guard(states[0].device->driver(), states[0].device->context());
    if (auto error =
            (*nccl)->check((*nccl)->GetUniqueId(&id), "ncclGetUniqueId"))
      return error;
  }
  windowsNote =
      llvm::formatv("NCCL {0}.{1}.{2} ({3})", (*nccl)->version / 10000,
                    (*nccl)->version / 100 % 100, (*nccl)->version % 100,
                    (*nccl)->path)
          .str();
  auto meeting = std::make_shared<Exchange>(int(ranks));
  return together("starting NCCL", kSetupSeconds,
                  [this, meeting](WorldRank &rank, int number) -> llvm::Error {
                    auto made = Communicator::create(
                        *rank.device, id, int(ranks), number,
                        makeAgreement(meeting, number));
                    if (!made)
                      return made.takeError();
                    rank.communicator = std::move(*made);
                    return llvm::Error::success();
                  });
}

llvm::Error World::Impl::makeCommunicators() {
  if (options.windows == WindowKind::Plain)
    return usePlain("as asked for");
  if (options.windows == WindowKind::Nccl)
    return useNccl();
  if (kernel.nccl()) // Which it has been compiled for.
    return useNccl();
  if (ranks == 1)
    return usePlain("one rank");
  // Only what can be known beforehand falls back: a failure of NCCL itself is
  // an error, because some ranks may be inside it.
  std::string why;
  if (auto nccl = Nccl::get()) {
    llvm::Error mismatch = checkDeviceLibrary(**nccl);
    if (!mismatch)
      return useNccl();
    why = llvm::toString(std::move(mismatch));
  } else {
    why = llvm::toString(nccl.takeError());
  }
  return usePlain(why);
}

//===----------------------------------------------------------------------===//
// Windows and memory
//===----------------------------------------------------------------------===//

CUdeviceptr World::Impl::addressOf(WorldRank &rank, unsigned arg) const {
  CUdeviceptr base = isShared(kernel.args()[arg]) ? rank.window->base()
                                                  : rank.memory->address();
  return base + layout.offsets[arg];
}

llvm::Error World::Impl::makeWindow(WorldRank &rank, int number) {
  auto window = rank.communicator->allocate(layout.windowBytes);
  if (!window)
    return window.takeError();
  rank.window = std::move(*window);
  if (rank.communicator->getReachSize() < kernel.lsaSize())
    return fail("the kernel expects {0} ranks in load/store reach; these GPUs "
                "give {1}",
                kernel.lsaSize(), rank.communicator->getReachSize());
  bindArguments(rank);
  return llvm::Error::success();
}

void World::Impl::bindArguments(WorldRank &rank) {
  for (auto [i, argument] : llvm::enumerate(kernel.args())) {
    if (argument.kind == jit::ArgKind::Scalar)
      continue;
    if (!isShared(argument)) {
      rank.kernel->bindBase(i, addressOf(rank, i));
      continue;
    }
    std::vector<CUdeviceptr> parts(rank.window->parts().begin(),
                                   rank.window->parts().end());
    for (CUdeviceptr &part : parts)
      if (part)
        part += layout.offsets[i];
    rank.kernel->bindParts(i, parts);
    rank.kernel->bindNcclWindow(i, rank.window->ncclHandle(),
                                layout.offsets[i]);
  }
}

/// Makes a device communicator for a kernel that calls NCCL's device library.
llvm::Error World::Impl::makeDeviceComm(WorldRank &rank, int) {
  auto made = rank.communicator->createDeviceComm(*kernel.nccl());
  if (!made)
    return made.takeError();
  rank.deviceComm = std::move(*made);
  rank.kernel->bindDeviceComm(rank.deviceComm->address());
  return llvm::Error::success();
}

/// Zeros and poison.
llvm::Error World::Impl::initialize(WorldRank &rank, int number) {
  const Driver &cu = rank.device->driver();
  for (auto [i, argument] : llvm::enumerate(kernel.args())) {
    size_t bytes = argument.bytes();
    if (argument.kind == jit::ArgKind::Scalar || bytes == 0)
      continue;
    CUresult result =
        argument.poisoned
            ? cu.MemsetD16(addressOf(rank, i),
                           uint16_t(mlir::comms::nvvm::kPoison32 & 0xFFFF),
                           bytes / 2)
            : cu.MemsetD8(addressOf(rank, i), 0, bytes);
    if (auto error = cu.check(result, "filling '" + argument.name + "'"))
      return error;
  }
  return cu.check(cu.CtxSynchronize(), "filling memory");
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

llvm::Error World::Impl::create() {
  if (options.graph)
    if (auto error = TimedStream::checkGraph(options.launches))
      return error;
  if (auto error = layout.compute(kernel.args()))
    return error;
  states = std::vector<WorldRank>(size_t(ranks));
  using std::placeholders::_1, std::placeholders::_2;
  auto bind = [this](llvm::Error (Impl::*step)(WorldRank &, int)) {
    return std::bind(step, this, _1, _2);
  };
  if (auto error =
          together("opening its GPU", kSetupSeconds, bind(&Impl::openDevice)))
    return error;
  if (auto error =
          together("loading the kernel", kSetupSeconds, bind(&Impl::prepare)))
    return error;
  if (auto error = makeCommunicators())
    return error;
  if (auto error =
          together("making windows", kSetupSeconds, bind(&Impl::makeWindow)))
    return error;
  if (kernel.nccl())
    if (auto error = together("making NCCL's device communicator",
                              kSetupSeconds, bind(&Impl::makeDeviceComm)))
      return error;
  return together("filling memory", kSetupSeconds, bind(&Impl::initialize));
}
