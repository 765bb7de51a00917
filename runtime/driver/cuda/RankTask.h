//===- RankTask.h - What a rank does, and what became of it -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As values, and as the bytes that pass between comms-run and the processes it
// starts, which are the same program.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H

#include "runtime/cpu/World.h"
#include "runtime/group/Group.h"

namespace commsir::driver {

/// What every rank does.
struct RankTask {
  /// Rank and device are filled in for each.
  group::GroupOptions group;
  group::KernelRequest request;
  int64_t launches = 1;
  bool graph = false;
  /// Seconds that the launches may take; 0: derived from the timeout.
  double timeLimit = 0;
  /// Folder where ranks meet.
  std::string rendezvous;

  /// Seconds that the launches may take, which is never 0.
  double seconds() const;
  std::string pack() const;
  /// None: `bytes` are not a task.
  static std::optional<RankTask> unpack(llvm::StringRef bytes);
};

/// What became of one rank.
struct RankOutcome {
  double microseconds = 0;
  /// How its windows were made.
  std::string windows;
  std::optional<cpu::RunError> error;

  /// At most `limit` bytes: what is too long is told in part.
  std::string pack(size_t limit) const;
  /// None: `bytes` are not an outcome.
  static std::optional<RankOutcome> unpack(llvm::StringRef bytes);
};

/// An error of a group, as one of a run.
cpu::RunError toRunError(llvm::Error error);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKTASK_H
