//===- EarlyCode.h - Code compiled in the background ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_EARLYCODE_H
#define COMMSIR_RUNTIME_GROUP_CUDA_EARLYCODE_H

#include "runtime/jit/cuda/CudaKernel.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>

namespace commsir::cuda {

/// Compiles kernels on its own threads, while calls continue without them. Used
/// by one thread at a time. The destructor waits for the compilers, except in a
/// forked process, which has none.
class EarlyCode {
public:
  using Compile =
      std::function<llvm::Expected<std::unique_ptr<jit::CudaKernel>>()>;

  ~EarlyCode();
  /// Starts to compile under `key`, unless that was done before. Returns
  /// whether compilation has ended: with the kernel, or with an error.
  bool isOver(llvm::StringRef key, Compile compile);
  /// Returns the kernel of `key`, and forgets it. Null if none was started, or
  /// if compilation failed: compiling it again reports the error. Waits for a
  /// running compiler.
  std::unique_ptr<jit::CudaKernel> take(llvm::StringRef key);

private:
  struct Job {
    std::thread thread;
    std::unique_ptr<jit::CudaKernel> kernel;
    std::atomic<bool> isOver{false};
  };
  llvm::StringMap<std::unique_ptr<Job>> jobs;
  const pid_t process = getpid();
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_EARLYCODE_H
