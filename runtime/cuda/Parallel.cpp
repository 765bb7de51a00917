//===- Parallel.cpp - One thread a rank, with a time limit ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Parallel.h"

#include "runtime/support/FatalErrors.h"
#include "runtime/support/GroupError.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <memory>
#include <thread>

using namespace commsir;
using namespace commsir::cuda;

namespace {

/// Shared with the threads: a thread that is stuck outlives the call.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> errors;
  std::vector<bool> done;
  size_t left = 0;
  std::function<llvm::Error(int)> work;
};

std::chrono::nanoseconds toDuration(double seconds) {
  return std::chrono::nanoseconds(int64_t(seconds * 1e9));
}

void noteEnd(Shared &shared, int rank, std::string error) {
  std::lock_guard lock(shared.mutex);
  shared.errors[rank] = std::move(error);
  shared.done[rank] = true;
  --shared.left;
  shared.changed.notify_all();
}

void runRank(const std::shared_ptr<Shared> &shared, int rank) {
  std::string text;
  std::exception_ptr failure = catchFailure([&] {
    if (llvm::Error error = shared->work(rank))
      text = llvm::toString(std::move(error));
  });
  noteEnd(*shared, rank, failure ? describeFailure(failure) : std::move(text));
}

} // namespace

ParallelResult
commsir::cuda::forEachRank(int ranks, llvm::StringRef what, double seconds,
                           std::function<llvm::Error(int rank)> work) {
  auto shared = std::make_shared<Shared>();
  shared->errors.resize(ranks);
  shared->done.resize(ranks);
  shared->left = ranks;
  shared->work = std::move(work);
  for (int rank = 0; rank < ranks; ++rank)
    if (auto thread = startThread([shared, rank] { runRank(shared, rank); });
        thread.joinable())
      thread.detach();
    else
      noteEnd(*shared, rank,
              "the system cannot start another thread: raise "
              "the limit of processes (ulimit -u)");

  std::unique_lock lock(shared->mutex);
  bool all = shared->changed.wait_for(lock, toDuration(seconds),
                                      [&] { return shared->left == 0; });
  ParallelResult result;
  result.stuck = !all;
  for (int rank = 0; rank < ranks && result.error.empty(); ++rank)
    if (!shared->errors[rank].empty())
      result.error =
          group::namesRank(shared->errors[rank])
              ? shared->errors[rank]
              : llvm::formatv("rank {0}: {1}", rank, shared->errors[rank])
                    .str();
  for (int rank = 0; rank < ranks && result.error.empty() && !all; ++rank)
    if (!shared->done[rank])
      result.error = llvm::formatv("rank {0} is still in {1} after "
                                   "{2} s",
                                   rank, what, seconds)
                         .str();
  return result;
}

llvm::Expected<std::vector<std::string>>
Exchange::tell(int rank, std::string mine, double seconds) {
  std::unique_lock lock(mutex);
  uint64_t current = round;
  slots[rank] = std::move(mine);
  if (++arrived == slots.size()) {
    result = slots;
    arrived = 0;
    ++round;
    changed.notify_all();
    return result;
  }
  if (!changed.wait_for(lock, toDuration(seconds),
                        [&] { return round != current; }))
    return llvm::createStringError(
        llvm::formatv("only {0} of {1} ranks have arrived after {2} s", arrived,
                      slots.size(), seconds)
            .str());
  // The next round cannot end before every rank has read this one's result:
  // it needs this rank too.
  return result;
}

llvm::Expected<std::vector<uint64_t>> Exchange::all(int rank, uint64_t value,
                                                    double seconds) {
  auto texts = tell(rank, std::to_string(value), seconds);
  if (!texts)
    return texts.takeError();
  std::vector<uint64_t> values(texts->size());
  for (auto [text, place] : llvm::zip(*texts, values))
    llvm::StringRef(text).getAsInteger(10, place);
  return values;
}

llvm::Error Exchange::agree(int rank, llvm::StringRef what, llvm::Error mine,
                            double seconds) {
  std::string text = group::packError(std::move(mine));
  auto texts = tell(rank, text, seconds);
  if (texts)
    return group::unpackErrors(*texts, rank);
  std::string why = llvm::toString(texts.takeError());
  if (!text.empty())
    return group::unpackErrors(text, 0);
  return group::makeError(
      group::GroupError::Kind::Peer,
      llvm::formatv("rank {0} is at '{1}', and {2}", rank, what, why).str());
}
