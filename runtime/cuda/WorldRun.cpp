//===- WorldRun.cpp - Launches of a world, and how they end ---------------===//
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
using Clock = std::chrono::steady_clock;

static llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(text);
}

llvm::Error World::Impl::upload(WorldRank &rank) {
  const Driver &cu = rank.device->driver();
  for (auto [i, bytes] : llvm::enumerate(rank.host))
    if (!bytes.empty())
      if (auto error = cu.check(
              cu.MemcpyHtoD(addressOf(rank, i), bytes.data(), bytes.size()),
              "copying '" + kernel.args()[i].name + "' to the GPU"))
        return error;
  if (options.graph && !rank.stream.isCaptured())
    if (auto error =
            rank.stream.capture(options.launches, [&](CUstream stream) {
              return rank.kernel->launch(stream);
            }))
      return error;
  // Of the context it would end what a world of the same GPU captures.
  return cu.check(cu.StreamSynchronize(nullptr), "copying to the GPU");
}

llvm::Error World::Impl::download(WorldRank &rank) {
  const Driver &cu = rank.device->driver();
  for (auto [i, bytes] : llvm::enumerate(rank.host))
    if (!bytes.empty())
      if (auto error = cu.check(
              cu.MemcpyDtoH(bytes.data(), addressOf(rank, i), bytes.size()),
              "copying '" + kernel.args()[i].name + "' from the GPU"))
        return error;
  return llvm::Error::success();
}

bool World::Impl::hasFailed() const {
  return canceled || llvm::any_of(states, [](const WorldRank &rank) {
           return rank.kernel->failure().has_value();
         });
}

double World::Impl::seconds() const {
  return runSeconds(options.timeLimit, options.timeout, options.launches);
}

/// Waits until the rank's stream is empty, with a limit.
llvm::Error World::Impl::waitFor(WorldRank &rank) {
  auto start = Clock::now();
  std::optional<Clock::time_point> failed, aborted;
  while (true) {
    CUresult result = rank.stream.query();
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    if (result != CUDA_ERROR_NOT_READY) {
      // After such an error (an illegal address, say) the driver refuses all
      // further work of this process.
      canceled = true;
      setStuck();
      return rank.device->driver().check(result, "running kernel '" +
                                                     kernel.name() + "'");
    }
    double elapsed = secondsSince(start);
    if (!failed && (hasFailed() || elapsed > seconds())) {
      canceled = canceled || elapsed > seconds();
      failed = Clock::now();
    }
    // The peers of a rank that has failed get the time to say for what they
    // wait themselves.
    if (failed && !aborted &&
        (elapsed > seconds() || secondsSince(*failed) > options.timeout + 1)) {
      if (auto error = rank.kernel->abort()) {
        setStuck(); // Nothing ends it now.
        return error;
      }
      aborted = Clock::now();
    }
    if (aborted && secondsSince(*aborted) > kAbortSeconds) {
      setStuck();
      return fail("the kernel does not end, although it was asked to");
    }
    pause(start);
  }
}

llvm::Error World::Impl::execute(WorldRank &rank) {
  // Ranks start together, so that their times say something.
  ++ready;
  auto start = Clock::now();
  while (ready < ranks && !canceled && secondsSince(start) < kStartSeconds)
    std::this_thread::yield();
  llvm::Error failure = rank.stream.start(
      options.launches,
      [&](CUstream stream) { return rank.kernel->launch(stream); },
      [&] { return canceled.load(); });
  if (failure)
    canceled = true; // Peers must not wait for launches that do not come.
  llvm::Error ended = waitFor(rank);
  if (failure || ended)
    return llvm::joinErrors(std::move(failure), std::move(ended));
  auto time = rank.stream.microseconds();
  if (!time)
    return time.takeError();
  rank.microseconds = *time;
  return llvm::Error::success();
}

/// Adds where the ranks that gave up were waiting.
void World::Impl::addFailures(cpu::RunError &report) const {
  for (auto [number, rank] : llvm::enumerate(states)) {
    auto record = rank.kernel->failure();
    if (!record)
      continue;
    cpu::Waiting waiting;
    waiting.rank = int64_t(number);
    waiting.block = record->block;
    if (record->site < kernel.sites().size()) {
      waiting.op = kernel.sites()[record->site].op;
      waiting.location = kernel.sites()[record->site].location;
    }
    waiting.what = describeFailure(*record);
    bool bounds = mlir::comms::nvvm::PollKind(record->kind) ==
                  mlir::comms::nvvm::PollKind::Bounds;
    if (report.waiting.empty() || bounds)
      report.kind = bounds ? cpu::RunError::Bounds : cpu::RunError::Deadlock;
    report.waiting.push_back(std::move(waiting));
  }
}

/// A report of all that is known: records of the ranks that gave up, else the
/// error.
cpu::RunError World::Impl::explain(llvm::Error error, bool whileRunning) {
  broken = true;
  std::string text = llvm::toString(std::move(error));
  cpu::RunError report;
  report.message = text;
  if (!whileRunning)
    return report;
  addFailures(report);
  if (report.waiting.empty()) {
    if (text.empty()) {
      report.kind = cpu::RunError::TimeLimit;
      report.message =
          llvm::formatv("the run has not ended after {0} s and was "
                        "stopped",
                        seconds());
    }
    return report;
  }
  report.message = llvm::formatv(
      report.kind == cpu::RunError::Bounds
          ? "{0} of {1} ranks stopped at an access outside its memory{2}"
          : "{0} of {1} ranks gave up waiting after {3} s{2}",
      report.waiting.size(), ranks, text.empty() ? "" : " (" + text + ")",
      options.timeout);
  return report;
}

std::variant<cpu::RunStats, cpu::RunError> World::Impl::run() {
  if (broken)
    return explain(
        llvm::createStringError("the world has failed before; make a new one"),
        false);
  if (auto error =
          together("copying to the GPU", kSetupSeconds,
                   [this](WorldRank &rank, int) { return upload(rank); }))
    return explain(std::move(error), false);
  ready = 0;
  auto start = Clock::now();
  llvm::Error error = together(
      "running the kernel", seconds() + options.timeout + kAbortSeconds + 20,
      [this](WorldRank &rank, int) { return execute(rank); });
  double elapsed = secondsSince(start);
  if (error || hasFailed())
    return explain(std::move(error), true);
  if (auto failure =
          together("copying from the GPU", kSetupSeconds,
                   [this](WorldRank &rank, int) { return download(rank); }))
    return explain(std::move(failure), false);
  cpu::RunStats stats;
  stats.totalMicroseconds = elapsed * 1e6;
  for (const WorldRank &rank : states)
    stats.rankMicroseconds.push_back(rank.microseconds);
  return stats;
}
