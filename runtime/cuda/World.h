//===- World.h - N GPUs of one process as N ranks ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU counterpart of cpu::World: one rank per GPU, one thread of the
// process per rank. The caller sees host memory; a run copies it to the GPUs,
// launches, and copies it back.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_WORLD_H
#define COMMSIR_RUNTIME_CUDA_WORLD_H

#include "runtime/jit/cuda/CudaKernel.h"
#include "runtime/support/RunReport.h"

#include <variant>

namespace commsir::cuda {

/// Kind of memory of windows.
enum class WindowKind {
  /// NCCL if it is available and there are at least two ranks, else Plain.
  Auto,
  /// NCCL's symmetric windows.
  Nccl,
  /// Device memory of one process, accessed by peer access.
  Plain
};

struct RunOptions {
  /// Number of launches per rank, in order in its stream.
  int64_t launches = 1;
  /// Number of the first launch, as if earlier launches had ended.
  int64_t firstLaunch = 1;
  /// Timeout of one poll of a kernel in seconds, after which a deadlock is
  /// reported.
  double timeout = 10;
  /// Time limit of the whole run in seconds; 0: derived from `timeout`.
  double timeLimit = 0;
  /// Capture the launches in a CUDA graph and replay it.
  bool graph = false;
  WindowKind windows = WindowKind::Auto;
  /// GPU of each rank; empty: GPU r for rank r.
  llvm::SmallVector<int> devices;
};

class World {
public:
  /// Opens the GPUs, loads the kernel, and allocates windows and memory, zeroed
  /// or poisoned. `kernel` must outlive the world.
  static llvm::Expected<std::unique_ptr<World>>
  create(const jit::CudaKernel &kernel, const RunOptions &options);
  /// Does not free memory that a kernel or library which has not returned still
  /// uses.
  ~World();

  /// Host copy of the window part, memory or cells of `rank` for argument
  /// `arg`; empty for channel memory.
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank);
  /// Sets a scalar argument; `bytes` must have its element's size.
  void setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes);
  /// Runs options.launches launches. After an error the world is unusable.
  /// `rankMicroseconds` is the time between events around all launches.
  std::variant<cpu::RunStats, cpu::RunError> run();

  /// Describes how windows were made, and why: "NCCL 2.28.9 (…/libnccl.so.2)".
  llvm::StringRef getWindowsNote() const;
  /// Whether a kernel or thread has not returned. The process should then exit
  /// without cleaning up.
  bool isStuck() const;

private:
  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Whether any world of this process is stuck (see World::isStuck).
bool isAnyWorldStuck();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_WORLD_H
