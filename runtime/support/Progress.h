//===- Progress.h - Signs of life on standard error -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_PROGRESS_H
#define COMMSIR_RUNTIME_SUPPORT_PROGRESS_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace commsir::driver {

/// Reports the current step once it has taken over two seconds: on a terminal
/// as one line that is rewritten, else as a line every ten seconds. Prints
/// nothing if `enabled` is false.
class Progress {
public:
  explicit Progress(bool enabled);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Begins the step `what` ("compiling") and restarts the two seconds.
  void begin(std::string what);
  /// Sets the finished fraction of the step, in [0, 1]. Thread-safe.
  void update(double fraction);
  /// Ends the step and clears the line. Must precede any other output.
  void end();

private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void print(Clock::time_point now);
  void clearLine();

  bool enabled, terminal;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::string step;
  double fraction = 0;
  bool lineShown = false;
  Clock::time_point started, printed;
  std::thread watcher;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_PROGRESS_H
