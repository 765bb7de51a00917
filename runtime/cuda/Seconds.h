//===- Seconds.h - Time limits ----------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Time limits shared by everything that runs kernels on GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_SECONDS_H
#define COMMSIR_RUNTIME_CUDA_SECONDS_H

#include <chrono>
#include <cstdint>
#include <thread>

namespace commsir::cuda {

/// Timeout for steps that run no kernel of CommsIR: opening a GPU, starting
/// NCCL, copying memory.
constexpr double kSetupSeconds = 120;
/// Timeout for a kernel to end after a stop request.
constexpr double kAbortSeconds = 5;
/// Timeout for a rank that is about to launch and waits for its peers, so that
/// measured times are comparable.
constexpr double kStartSeconds = 10;

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Time limit of `launches` in seconds: `timeLimit`, or, if that is 0, the
/// longest possible time when polls end after `timeout` seconds.
inline double runSeconds(double timeLimit, double timeout, int64_t launches) {
  if (timeLimit > 0)
    return timeLimit;
  // A poll that times out ends its rank; its peers end one timeout later.
  double polls = timeout > 0 ? 3 * timeout : 3600;
  return polls + 20 + 1e-3 * double(launches);
}

/// Sleeps between two checks of work that began at `start`: briefly at first,
/// so that short runs end promptly, then longer, to save processor time.
inline void pause(std::chrono::steady_clock::time_point start) {
  if (secondsSince(start) > 0.01)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  else
    std::this_thread::yield();
}

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_SECONDS_H
