//===- SharedRun.h - What the processes of a run share ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One piece of memory without a name. comms-run makes it and writes the task
// and the arrays; each rank maps it, and writes its results and what became of
// it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_SHAREDRUN_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_SHAREDRUN_H

#include "runtime/driver/cuda/RankArrays.h"
#include "runtime/driver/cuda/RankTask.h"

#include <atomic>

namespace commsir::driver {

class SharedRun {
public:
  /// How the ranks know of each other.
  struct State {
    /// Ranks that are about to launch; ranks that have ended.
    std::atomic<uint32_t> ready{0}, ended{0};
    std::atomic<uint32_t> canceled{0};
  };

  SharedRun() = default;
  SharedRun(const SharedRun &) = delete;
  SharedRun &operator=(const SharedRun &) = delete;
  ~SharedRun();

  /// Makes the memory for the ranks of `task`, and writes `task`.
  llvm::Error create(const RankTask &task, const RankArrays &arrays);
  /// Maps what another process has made, by its file. Returns whether it is the
  /// memory of a run.
  bool open(int file);

  /// By which a process that inherits it opens the memory.
  int getFile() const { return file; }
  int64_t ranks() const;
  State &state() const;
  /// The task, and where its arrays lie; none: the memory holds something else.
  std::optional<RankTask> readTask(RankArrays &arrays) const;
  /// Where a rank's arrays begin.
  char *arraysOf(int64_t rank) const;

  void writeOutcome(int64_t rank, const RankOutcome &outcome);
  /// None: the rank has not said.
  std::optional<RankOutcome> readOutcome(int64_t rank) const;

private:
  struct Header;
  struct Slot;
  llvm::Error map();
  Slot &slot(int64_t rank) const;

  int file = -1;
  size_t bytes = 0;
  /// Where things lie in it, in bytes.
  struct Places {
    uint64_t ranks, taskOffset, taskBytes, arraysOffset, arraysBytes;
  };
  Places places{};
  Header *header = nullptr;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_SHAREDRUN_H
