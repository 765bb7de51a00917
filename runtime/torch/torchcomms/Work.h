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

#include <mutex>
#include <thread>

namespace commsir::torchcomms {

/// That a thread has returned to torchcomms, which then registers hooks and
/// completes futures without a lock: no other thread may end the call until it
/// has. Nothing tells when, so that it is measured by that thread's own time,
/// which stands still where it is held up.
class CallReturn {
public:
  /// By the thread that returns next.
  void note();
  bool isPast() const;

private:
  clockid_t clock{};
  std::chrono::nanoseconds ran{-1};
  std::chrono::steady_clock::time_point since;
};

/// One call of a communicator. Its status is set once: by who waits for it, or
/// by the thread of `StatusWatcher`.
class Work : public torch::comms::TorchWork {
public:
  using Status = WorkStatus;
  /// `inner`: null for a call that is a launch in the current stream and no
  /// more; `limit`: of waits, or zero for `usual`, the communicator's own;
  /// `pointToPoint`: a send, a receive, or several of them.
  Work(c10::intrusive_ptr<c10d::Work> inner, c10::Device device,
       bool pointToPoint, std::chrono::milliseconds limit,
       std::chrono::milliseconds usual);

  /// On the CPU, until the call is over; on a GPU the current stream waits. As
  /// all waits it throws what has become of a call that failed.
  void wait() override;
  /// Until it is over.
  void waitBlocking() override;
  void hostSynchronize() override;
  std::chrono::milliseconds getTimeout() const override {
    return hasLimit() ? limit : usual;
  }

  /// From here on the program need not wait: the call is over, or ordered in
  /// the stream that it was made in.
  void finish();
  /// Sets the status if the call is over, or nobody has come within its time;
  /// whether it is set.
  bool look();

protected:
  /// The future of torch's view of this call, where that has tensors on a GPU:
  /// done when theirs is, whose stream it is then ordered in.
  void markCompleted(c10::intrusive_ptr<c10::ivalue::Future> future,
                     std::vector<at::Tensor> outputs) override;

private:
  bool onGpu() const { return !device.is_cpu(); }
  bool hasLimit() const { return limit.count() > 0; }
  /// How long `wait` waits. On a GPU, a wait for some time is one on the host;
  /// a collective knows its own time.
  std::chrono::milliseconds waits() const;
  void conclude(std::exception_ptr error);
  /// Completes the futures, unless that has been done.
  void resolve(std::exception_ptr error);
  void waitFor(std::chrono::milliseconds time);
  /// Of a call that is over: throws what has become of it.
  void requireSuccess();

  const c10::intrusive_ptr<c10d::Work> inner;
  const c10::Device device;
  const bool pointToPoint;
  const std::chrono::milliseconds limit, usual;
  const std::chrono::steady_clock::time_point begun =
      std::chrono::steady_clock::now();
  /// Recursive: what is told of the end may wait for this call.
  std::recursive_mutex mutex;
  bool isOver = false;
  std::exception_ptr failure;
  /// Futures, completed by this class: who waits and finds one that is not
  /// would do so.
  std::vector<std::function<void(std::exception_ptr)>> atEnd;
  CallReturn returned;
};

/// Looks for calls that nobody waits for. torchcomms reads a status without
/// asking, and programs may wait for it.
class StatusWatcher {
public:
  /// Another one in a child of fork(), which has no thread.
  static StatusWatcher &get();
  void add(c10::intrusive_ptr<Work> work);
  /// Before Python ends: the thread must drop no tensor after that.
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
