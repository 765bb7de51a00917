//===- World.h - N GPUs of one process as N ranks ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU counterpart of cpu::World: one rank a GPU, one thread of the process
// a rank. Memory that the caller sees is the host's; a run copies it to the
// GPUs, launches, and copies it back.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_WORLD_H
#define COMMSIR_RUNTIME_CUDA_WORLD_H

#include "runtime/jit/cuda/CudaKernel.h"
#include "runtime/support/RunReport.h"

#include <variant>

namespace commsir::cuda {

/// What windows are made of.
enum class WindowKind {
  /// NCCL where it is to be had and there are two ranks or more, else Plain.
  Auto,
  /// NCCL's symmetric windows.
  Nccl,
  /// Device memory of one process, reached by peer access.
  Plain
};

struct RunOptions {
  /// Launches of each rank, one after the other in its stream.
  int64_t launches = 1;
  /// Number of the first of them, as if others had ended before.
  int64_t firstLaunch = 1;
  /// Seconds that one poll of a kernel may take; more is a deadlock.
  double timeout = 10;
  /// Limit on the whole run in seconds; 0: derived from `timeout`.
  double timeLimit = 0;
  /// Capture the launches in a CUDA graph and replay that.
  bool graph = false;
  WindowKind windows = WindowKind::Auto;
  /// GPU of each rank; empty: GPU r for rank r.
  llvm::SmallVector<int> devices;
};

class World {
public:
  /// Opens the GPUs, loads the kernel, makes windows and memory, zeroed or
  /// poisoned. `kernel` must outlive the world.
  static llvm::Expected<std::unique_ptr<World>>
  create(const jit::CudaKernel &kernel, const RunOptions &options);
  /// Memory that a kernel or library which did not return still uses is left.
  ~World();

  /// Host copy of the window part, memory or cells of `rank` for argument
  /// number `arg`; empty for channel memory.
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank);
  /// Sets a scalar argument; `bytes` has the size of its element.
  void setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes);
  /// options.launches launches. After an error the world is of no more use.
  /// `rankMicroseconds` is the time between events around all launches.
  std::variant<cpu::RunStats, cpu::RunError> run();

  /// How windows were made, and why: "NCCL 2.28.9 (…/libnccl.so.2)".
  llvm::StringRef getWindowsNote() const;
  /// Something has not returned; the process should leave without cleaning up.
  bool isStuck() const;

private:
  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Whether some world of this process is stuck (see World::isStuck).
bool isAnyWorldStuck();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_WORLD_H
