//===- SharedRun.h - Memory that a run's processes share --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One anonymous shared memory. comms-run makes it and writes the task and the
// arrays; each rank maps it and writes its results and outcome.
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
  /// Synchronization of the ranks.
  struct State {
    /// Number of ranks that are about to launch; number of ranks that have
    /// ended.
    std::atomic<uint32_t> ready{0}, ended{0};
    std::atomic<uint32_t> canceled{0};
  };

  SharedRun() = default;
  SharedRun(const SharedRun &) = delete;
  SharedRun &operator=(const SharedRun &) = delete;
  ~SharedRun();

  /// Makes the memory for the ranks of `task`, and writes `task`.
  llvm::Error create(const RankTask &task, const RankArrays &arrays);
  /// Maps another process's memory through its file. Returns false if it is not
  /// the memory of a run.
  bool open(int file);

  /// File through which a process that inherits it opens the memory.
  int getFile() const { return file; }
  int64_t ranks() const;
  State &state() const;
  /// Reads the task and the layout of its arrays; none: the memory holds
  /// something else.
  std::optional<RankTask> readTask(RankArrays &arrays) const;
  /// Address of a rank's arrays.
  char *arraysOf(int64_t rank) const;

  void writeOutcome(int64_t rank, const RankOutcome &outcome);
  /// None: the rank has not reported.
  std::optional<RankOutcome> readOutcome(int64_t rank) const;

private:
  struct Header;
  struct Slot;
  llvm::Error map();
  Slot &slot(int64_t rank) const;

  int file = -1;
  size_t bytes = 0;
  /// Offsets of the parts, in bytes.
  struct Places {
    uint64_t ranks, taskOffset, taskBytes, arraysOffset, arraysBytes;
  };
  Places places{};
  Header *header = nullptr;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_SHAREDRUN_H
