//===- Work.h - torchcomms' view of a call ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_TORCHCOMMS_WORK_H
#define COMMSIR_RUNTIME_TORCH_TORCHCOMMS_WORK_H

#include <comms/torchcomms/TorchWork.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace commsir::torchcomms {

/// Detects that a thread has returned to torchcomms, which then registers hooks
/// and completes futures without a lock; no other thread may end the call
/// before that. Nothing signals the return, so it is inferred from the thread's
/// CPU time, which stands still while the thread is blocked.
class CallReturn {
public:
  /// Called by the thread that is about to return.
  void note();
  bool isPast() const;

private:
  clockid_t clock{};
  std::chrono::nanoseconds ran{-1};
  std::chrono::steady_clock::time_point since;
};

/// One call of a communicator. Its status is set once: by the thread that waits
/// for it, or by the thread of `StatusWatcher`.
class Work : public torch::comms::TorchWork {
public:
  using Status = WorkStatus;
  /// `inner`: null for a call that is just a launch in the current stream;
  /// `limit`: timeout of waits, or 0 for `usual`, the communicator's own;
  /// `pointToPoint`: the call consists of sends and receives.
  Work(c10::intrusive_ptr<c10d::Work> inner, c10::Device device,
       bool pointToPoint, std::chrono::milliseconds limit,
       std::chrono::milliseconds usual);

  /// CPU: waits until the call is over. GPU: makes the current stream wait.
  /// Throws the error of a failed call, like all waits.
  void wait() override;
  /// Waits until the call is over.
  void waitBlocking() override;
  void hostSynchronize() override;
  std::chrono::milliseconds getTimeout() const override {
    return hasLimit() ? limit : usual;
  }

  /// Notes that the program need not wait any longer: the call is over, or
  /// ordered in its stream.
  void finish();
  /// Sets the status if the call is over or has timed out. Returns whether it
  /// is set.
  bool look();

protected:
  /// Completes the future of torch's view of this call if it has GPU tensors:
  /// done when torch's future is, and ordered in that future's stream.
  void markCompleted(c10::intrusive_ptr<c10::ivalue::Future> future,
                     std::vector<at::Tensor> outputs) override;

private:
  bool onGpu() const { return !device.is_cpu(); }
  bool hasLimit() const { return limit.count() > 0; }
  /// Timeout of `wait`. On a GPU, a wait with a timeout blocks the host; a
  /// collective has its own timeout.
  std::chrono::milliseconds waits() const;
  void conclude(std::exception_ptr error);
  /// Completes the futures if they are not complete yet.
  void resolve(std::exception_ptr error);
  void waitFor(std::chrono::milliseconds time);
  /// Throws the error of a call that has failed. The call must be over.
  void requireSuccess();

  const c10::intrusive_ptr<c10d::Work> inner;
  const c10::Device device;
  const bool pointToPoint;
  const std::chrono::milliseconds limit, usual;
  const std::chrono::steady_clock::time_point begun =
      std::chrono::steady_clock::now();
  /// Recursive, because a callback of the end may wait for this call.
  std::recursive_mutex mutex;
  bool isOver = false;
  std::exception_ptr failure;
  /// Futures that this class completes, because a thread that waits and finds
  /// one incomplete would do so.
  std::vector<std::function<void(std::exception_ptr)>> atEnd;
  CallReturn returned;
};

/// Looks after calls that no thread waits for: torchcomms reads their status
/// without waiting, and programs may wait for it to change.
class StatusWatcher {
public:
  /// Returns a new one in a forked child, which lacks the thread.
  static StatusWatcher &get();
  void add(c10::intrusive_ptr<Work> work);
  /// Called before Python ends: the thread must not drop tensors after that.
  void end();

private:
  void run();

  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<c10::intrusive_ptr<Work>> added;
  std::thread thread;
  bool hasEnded = false;
};

} // namespace commsir::torchcomms

#endif // COMMSIR_RUNTIME_TORCH_TORCHCOMMS_WORK_H
