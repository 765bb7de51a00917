//===- World.cpp - N GPUs of one process as N ranks -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/World.h"

#include "runtime/cuda/Parallel.h"
#include "runtime/cuda/RankDevices.h"
#include "runtime/cuda/WorldState.h"

using namespace commsir;
using namespace commsir::cuda;

static std::atomic<bool> anyStuck{false};

bool commsir::cuda::isAnyWorldStuck() { return anyStuck; }

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

void World::Impl::setStuck() { anyStuck = stuck = true; }

llvm::Error
World::Impl::together(llvm::StringRef what, double seconds,
                      std::function<llvm::Error(WorldRank &, int)> work) {
  ParallelResult result = forEachRank(
      int(ranks), what, seconds, [this, work](int number) -> llvm::Error {
        WorldRank &rank = states[number];
        if (!rank.device)
          return work(rank, number);
        ContextGuard guard(rank.device->driver(), rank.device->context());
        return work(rank, number);
      });
  if (result.stuck)
    setStuck();
  if (result)
    return llvm::Error::success();
  broken = true;
  return llvm::createStringError(result.error);
}

void WorldRank::destroy() {
  if (!device)
    return;
  ContextGuard guard(device->driver(), device->context());
  stream.destroy();
  kernel.reset();
  memory.reset();
  deviceComm.reset();
  window.reset();
  communicator.reset();
}

void World::Impl::destroy() {
  if (stuck || states.empty())
    return;
  ParallelResult result =
      forEachRank(int(ranks), "freeing GPU memory", 30, [this](int rank) {
        states[rank].destroy();
        return llvm::Error::success();
      });
  if (result.stuck)
    setStuck();
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

World::World(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

World::~World() {
  impl->destroy();
  // Threads that are stuck still use it.
  if (impl->stuck)
    (void)impl.release();
}

llvm::Expected<std::unique_ptr<World>>
World::create(const jit::CudaKernel &kernel, const RunOptions &options) {
  auto chip = checkMachine(kernel.ranks(), options.devices);
  if (!chip)
    return chip.takeError();
  std::unique_ptr<World> world(
      new World(std::make_unique<Impl>(kernel, options)));
  if (auto error = world->impl->create())
    return std::move(error);
  return world;
}

llvm::MutableArrayRef<char> World::memory(unsigned arg, int64_t rank) {
  return impl->states[rank].host[arg];
}

void World::setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes) {
  impl->states[rank].kernel->bindScalar(arg, bytes);
}

std::variant<cpu::RunStats, cpu::RunError> World::run() { return impl->run(); }

llvm::StringRef World::getWindowsNote() const { return impl->windowsNote; }

bool World::isStuck() const { return impl->stuck; }
