//===- Seconds.h - How long things take, and may take -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all that runs kernels on GPUs has in common of time.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_SECONDS_H
#define COMMSIR_RUNTIME_CUDA_SECONDS_H

#include <chrono>
#include <cstdint>
#include <thread>

namespace commsir::cuda {

/// Seconds for what needs no kernel of ours: opening a GPU, starting NCCL,
/// copying memory.
constexpr double kSetupSeconds = 120;
/// Seconds that a kernel has to end after it was told to.
constexpr double kAbortSeconds = 5;
/// Seconds that a rank which is about to launch waits for its peers, so that
/// times say something.
constexpr double kStartSeconds = 10;

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Seconds that `launches` may take: `timeLimit`, or, where that is 0, what
/// they take at the most when polls end after `timeout`.
inline double runSeconds(double timeLimit, double timeout, int64_t launches) {
  if (timeLimit > 0)
    return timeLimit;
  // One poll that times out ends a rank, and its peers one timeout later.
  double polls = timeout > 0 ? 3 * timeout : 3600;
  return polls + 20 + 1e-3 * double(launches);
}

/// Between two looks at what began at `start`: short runs are told at once,
/// long ones do not take the processor.
inline void pause(std::chrono::steady_clock::time_point start) {
  if (secondsSince(start) > 0.01)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  else
    std::this_thread::yield();
}

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_SECONDS_H
