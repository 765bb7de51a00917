//===- RankRun.h - One rank, from its group to its results ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKRUN_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKRUN_H

#include "runtime/cuda/TimedStream.h"
#include "runtime/driver/cuda/RankTask.h"

#include <chrono>
#include <functional>

namespace commsir::driver {

/// How a rank communicates with the other ranks of its run.
struct RunPeers {
  /// Waits until all ranks are about to launch.
  std::function<void()> meet = [] {};
  /// Whether the run was canceled.
  std::function<bool()> isCanceled = [] { return false; };
};

/// One rank on one GPU: joins its group, compiles, copies, launches, copies
/// back.
class RankRun {
public:
  explicit RankRun(const RankTask &task) : task(task) {}
  ~RankRun();

  /// `host` holds the arrays of the arguments that are not hidden, and the
  /// scalars' bytes.
  RankOutcome run(llvm::ArrayRef<llvm::MutableArrayRef<char>> host,
                  const RunPeers &runPeers);
  /// Whether its kernel does not end. The object must then not be destroyed,
  /// because freeing memory waits for the kernel.
  bool isStuck() const { return stuck; }

private:
  llvm::Error start();
  llvm::Error checkArrays() const;
  llvm::Error allocate();
  void bindArguments(char *window, llvm::ArrayRef<size_t> offsets);
  llvm::Error launchAll(const RunPeers &runPeers, double &microseconds);
  llvm::Error launchOnce(CUstream stream);
  llvm::Error waitForEnd(const RunPeers &runPeers);
  llvm::Error copy(bool in);
  const cuda::Driver &driver() const;
  bool isArray(size_t i) const {
    return kernel->args()[i].kind == jit::ArgKind::Window ||
           kernel->args()[i].kind == jit::ArgKind::Memory;
  }

  RankTask task;
  std::unique_ptr<group::Store> store;
  std::unique_ptr<group::Group> group;
  group::GroupKernel *kernel = nullptr;
  std::optional<cuda::Memory> memory;
  std::vector<llvm::MutableArrayRef<char>> host;
  std::vector<group::Argument> arguments;
  cuda::TimedStream stream;
  bool stuck = false, timedOut = false;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKRUN_H
