//===- Parallel.h - One thread per rank, with a time limit ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that several ranks of one process take together (start NCCL, register a
// window, launch) run on one thread per rank. If a rank fails or a library does
// not return, the result is an error rather than a program that waits.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_PARALLEL_H
#define COMMSIR_RUNTIME_CUDA_PARALLEL_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace commsir::cuda {

/// Outcome of `forEachRank`.
struct ParallelResult {
  /// "" or the error of the lowest rank that failed: "rank 3: …".
  std::string error;
  /// Some thread has not returned. It still uses what `work` refers to.
  bool stuck = false;

  explicit operator bool() const { return error.empty(); }
};

/// Runs `work(rank)` for every rank in its own thread and waits at most
/// `seconds` for all. `what` names the work in errors. If threads are stuck,
/// `work` must stay valid for them.
ParallelResult forEachRank(int ranks, llvm::StringRef what, double seconds,
                           std::function<llvm::Error(int rank)> work);

/// Exchanges values between the threads of one process, one thread per rank.
/// All ranks make the same calls in the same order.
class Exchange {
public:
  explicit Exchange(int ranks) : slots(ranks) {}

  /// Returns this rank's error, else the error of the lowest rank that has one,
  /// or success.
  llvm::Error agree(int rank, llvm::StringRef what, llvm::Error mine,
                    double seconds);

  /// Shares `value` as `rank`'s and returns every rank's, in rank order. Fails
  /// if not all ranks arrive within `seconds`.
  llvm::Expected<std::vector<uint64_t>> all(int rank, uint64_t value,
                                            double seconds);

private:
  llvm::Expected<std::vector<std::string>> tell(int rank, std::string mine,
                                                double seconds);

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> slots, result;
  size_t arrived = 0;
  uint64_t round = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_PARALLEL_H
