//===- RankTask.h - The task and outcome of a rank --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The task and outcome of a rank, as values and as bytes. comms-run exchanges
// the bytes with its rank processes, which run the same program.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H

#include "runtime/cpu/World.h"
#include "runtime/group/Group.h"

namespace commsir::driver {

/// The task of every rank.
struct RankTask {
  /// Rank and device are set separately for each rank.
  group::GroupOptions group;
  group::KernelRequest request;
  int64_t launches = 1;
  bool graph = false;
  /// Time limit of the launches in seconds; 0: derived from the timeout.
  double timeLimit = 0;
  /// Folder in which ranks meet.
  std::string rendezvous;

  /// Time limit of the launches in seconds, never 0.
  double seconds() const;
  std::string pack() const;
  /// Returns none if `bytes` is not a task.
  static std::optional<RankTask> unpack(llvm::StringRef bytes);
};

/// The outcome of one rank.
struct RankOutcome {
  double microseconds = 0;
  /// Description of how its windows were made.
  std::string windows;
  std::optional<cpu::RunError> error;

  /// Returns at most `limit` bytes; long texts are truncated.
  std::string pack(size_t limit) const;
  /// Returns none if `bytes` is not an outcome.
  static std::optional<RankOutcome> unpack(llvm::StringRef bytes);
};

/// Converts a group error to a run error.
cpu::RunError toRunError(llvm::Error error);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H
