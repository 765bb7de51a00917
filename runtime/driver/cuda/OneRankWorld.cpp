//===- OneRankWorld.cpp - This process is one rank of a job ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RankRun.h"
#include "runtime/driver/cuda/RanksWorld.h"

#include "llvm/Support/MathExtras.h"

#include <atomic>

using namespace commsir;
using namespace commsir::driver;

static std::atomic<bool> anyStuck{false};

bool commsir::driver::isRankStuck() { return anyStuck; }

namespace {

class OneRankWorld final : public RanksWorld {
public:
  OneRankWorld(const RankTask &task, const jit::CudaKernel &kernel,
               JobRank place)
      : RanksWorld(task, kernel), place(place),
        arrays(llvm::alignTo(std::max<size_t>(places.bytes, 1), 8) / 8) {}

  std::variant<cpu::RunStats, cpu::RunError> run() override;
  bool isLocal(int64_t rank) const override { return rank == place.rank; }

private:
  char *arraysOf(int64_t rank) override {
    return rank == place.rank ? reinterpret_cast<char *>(arrays.data())
                              : nullptr;
  }
  JobRank place;
  std::vector<uint64_t> arrays;
};

} // namespace

std::variant<cpu::RunStats, cpu::RunError> OneRankWorld::run() {
  auto rank = std::make_unique<RankRun>(task);
  RankOutcome outcome = rank->run(places.at(arraysOf(place.rank)), {});
  if (rank->isStuck()) {
    anyStuck = true;
    (void)rank.release(); // Its end would wait for the kernel.
  }
  windows = outcome.windows;
  if (outcome.error)
    return *outcome.error;
  cpu::RunStats stats;
  stats.rankMicroseconds.assign(size_t(place.ranks), 0);
  stats.rankMicroseconds[place.rank] = outcome.microseconds;
  stats.totalMicroseconds = outcome.microseconds;
  return stats;
}

std::unique_ptr<RanksWorld> commsir::driver::createOneRankWorld(
    const RankTask &task, const jit::CudaKernel &kernel, JobRank place) {
  return std::make_unique<OneRankWorld>(task, kernel, place);
}
