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

#include <mutex>
#include <thread>

namespace commsir::torchcomms {

/// One call of a communicator. Its status is set once: by who waits for it, or
/// by the thread of `Watch`.
class Work : public torch::comms::TorchWork {
public:
  using Status = WorkStatus;
  /// `inner`: null for a call that is a launch in the current stream and no
  /// more; `limit`: of waits, or zero for the process group's own;
  /// `pointToPoint`: a send, a receive, or several of them.
  Work(c10::intrusive_ptr<c10d::Work> inner, c10::Device device,
       bool pointToPoint, std::chrono::milliseconds limit);

  /// On the CPU, until the call is over; on a GPU the current stream waits. As
  /// all waits it throws what has become of a call that failed.
  void wait() override;
  /// Until it is over.
  void waitBlocking() override;
  void hostSynchronize() override;
  std::chrono::milliseconds getTimeout() const override { return limit; }

  /// From here on the program need not wait: the call is over, or ordered in
  /// the stream that it was made in.
  void finish();
  /// Sets the status if the call is over; whether it is.
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
  void waitFor(std::chrono::milliseconds time);

  const c10::intrusive_ptr<c10d::Work> inner;
  const c10::Device device;
  const bool pointToPoint;
  const std::chrono::milliseconds limit;
  const std::chrono::steady_clock::time_point begun =
      std::chrono::steady_clock::now();
  /// Recursive: what is told of the end may wait for this call.
  std::recursive_mutex mutex;
  bool isOver = false;
  std::exception_ptr failure;
  /// Told of the end by this class, since torchcomms' own list of hooks must
  /// not be added to while another thread runs them.
  std::vector<std::function<void(std::exception_ptr)>> atEnd;
};

/// Looks for calls that nobody waits for. torchcomms reads a status without
/// asking, and programs may wait for it.
class Watch {
public:
  static Watch &get();
  void add(c10::intrusive_ptr<Work> work);
  /// Before Python ends: the thread must drop no tensor after that.
  void end();

private:
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<c10::intrusive_ptr<Work>> added;
  std::thread thread;
  bool hasEnded = false;
};

} // namespace commsir::torchcomms

#endif // COMMSIR_RUNTIME_TORCH_TORCHCOMMS_WORK_H
