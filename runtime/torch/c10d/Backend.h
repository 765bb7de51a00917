//===- Backend.h - The torch.distributed backend ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A c10d::Backend for CPU and CUDA tensors. It runs the calls that CommsIR
// compiles and delegates each other call to Gloo or NCCL, counting the reason.
// Calls of one group begin in issue order.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_BACKEND_H
#define COMMSIR_RUNTIME_TORCH_C10D_BACKEND_H

#include "runtime/torch/c10d/Counters.h"
#include "runtime/torch/c10d/DeviceState.h"
#include "runtime/torch/c10d/Messages.h"
#include "runtime/torch/c10d/Queue.h"
#include "runtime/torch/c10d/Transfers.h"

namespace commsir::torch_c10d {

class Backend : public c10d::Backend {
public:
  explicit Backend(Settings settings);
  ~Backend() override;
  /// Makes a group that `endAll` knows.
  static c10::intrusive_ptr<Backend> make(Settings settings);
  /// Called before Python ends, because threads of groups must not drop tensors
  /// of Python after that. Calls in progress get a few seconds and are then
  /// aborted.
  static void endAll();

  const std::string getBackendName() const override { return "commsir"; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  c10d::ErrorType getError() override;

  WorkPtr broadcast(std::vector<at::Tensor> &tensors,
                    const c10d::BroadcastOptions &opts) override;
  WorkPtr allreduce(std::vector<at::Tensor> &tensors,
                    const c10d::AllreduceOptions &opts) override;
  WorkPtr allreduce_sparse(std::vector<at::Tensor> &tensors,
                           const c10d::AllreduceOptions &opts) override;
  WorkPtr
  allreduce_coalesced(std::vector<at::Tensor> &tensors,
                      const c10d::AllreduceCoalescedOptions &opts) override;
  WorkPtr reduce(std::vector<at::Tensor> &tensors,
                 const c10d::ReduceOptions &opts) override;
  WorkPtr allgather(std::vector<std::vector<at::Tensor>> &outputs,
                    std::vector<at::Tensor> &inputs,
                    const c10d::AllgatherOptions &opts) override;
  WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                          const c10d::AllgatherOptions &opts) override;
  WorkPtr allgather_coalesced(std::vector<std::vector<at::Tensor>> &outputs,
                              std::vector<at::Tensor> &inputs,
                              const c10d::AllgatherOptions &opts) override;
  WorkPtr
  allgather_into_tensor_coalesced(std::vector<at::Tensor> &outputs,
                                  std::vector<at::Tensor> &inputs,
                                  const c10d::AllgatherOptions &opts) override;
  WorkPtr gather(std::vector<std::vector<at::Tensor>> &outputs,
                 std::vector<at::Tensor> &inputs,
                 const c10d::GatherOptions &opts) override;
  /// Runs a program's own collective `run` in order with the group's calls.
  /// `name` appears in counters. Without tensors, it runs as a call on CPU
  /// tensors.
  WorkPtr runInTurn(const std::string &name, std::vector<at::Tensor> inputs,
                    std::vector<at::Tensor> outputs, std::function<void()> run,
                    std::chrono::milliseconds timeout, bool async);
  /// Overrides a function of torch 2.14; earlier releases have none.
  // NOLINTNEXTLINE(readability-identifier-naming): torch's name.
  virtual WorkPtr gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                     const c10d::GatherOptions &opts);
  WorkPtr scatter(std::vector<at::Tensor> &outputs,
                  std::vector<std::vector<at::Tensor>> &inputs,
                  const c10d::ScatterOptions &opts) override;
  WorkPtr reduce_scatter(std::vector<at::Tensor> &outputs,
                         std::vector<std::vector<at::Tensor>> &inputs,
                         const c10d::ReduceScatterOptions &opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                               const c10d::ReduceScatterOptions &opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor> &outputs, std::vector<at::Tensor> &inputs,
      const c10d::ReduceScatterOptions &opts) override;
  WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                        std::vector<int64_t> &outputSplits,
                        std::vector<int64_t> &inputSplits,
                        const c10d::AllToAllOptions &opts) override;
  WorkPtr alltoall(std::vector<at::Tensor> &outputs,
                   std::vector<at::Tensor> &inputs,
                   const c10d::AllToAllOptions &opts) override;
  WorkPtr send(std::vector<at::Tensor> &tensors, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor> &tensors, int from, int tag) override;
  WorkPtr recvAnysource(std::vector<at::Tensor> &tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions &opts) override;
  void monitoredBarrier(const c10d::BarrierOptions &opts,
                        bool waitAllRanks) override;

  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  BackendPtr split(const StorePtr &store, const std::vector<int> &ranks,
                   const c10::intrusive_ptr<Options> &opts) override;
  BackendPtr merge(const StorePtr &store,
                   const c10::intrusive_ptr<Options> &opts, const int &rank,
                   const int &size) override;
  BackendPtr shrink(const std::vector<int64_t> &ranksToExclude, int flags,
                    const c10::intrusive_ptr<Options> &opts) override;

  void registerOnCompletionHook(
      std::function<void(std::shared_ptr<c10d::WorkInfo>)> &&hook) override;
  void waitForPendingWorks() override;
  /// Times are always recorded.
  void enableCollectivesTiming() override {}
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence; }
  void abort() override;
  void shutdown() override;

  /// The last calls, and the counters of the group on each device type.
  std::vector<CallRecord> recent() { return recorder.recent(); }
  std::map<std::string, std::string> groupCounts();
  /// CommsIR's group for a device type. The backend keeps ownership.
  commsir_group *groupOn(const c10::Device &device);
  void abortBecause(const std::string &reason);

private:
  using CallPtr = std::shared_ptr<Call>;
  CallPtr newCall(c10d::OpType type, const char *name,
                  std::chrono::milliseconds timeout, bool async);
  void checkUsable(const char *name) const;
  void checkTensors(const Call &call) const;
  void checkDevice(const char *name, const c10::Device &device);
  WorkPtr submit(CallPtr call);
  WorkPtr enqueue(CallPtr call, std::vector<CallPtr> calls);
  void runOnCpu(const CallPtr &call, const std::vector<CallPtr> &calls);
  void runOnGpu(const CallPtr &call, const std::vector<CallPtr> &calls);
  void runAll(const CallPtr &call, const std::vector<CallPtr> &calls,
              void *stream);
  void run(Call &call, CallWork &work, void *stream);
  bool mayBePlain(const at::Tensor &input);
  std::optional<WorkPtr> runPlain(PlainCall &call);
  /// Where a plain call is counted and runs; `stream` is the driver's handle.
  struct Route {
    std::atomic<uint64_t> *count;
    c10::Stream stream;
    void *native;
  };
  std::optional<Route> routeOf(const PlainCall &call,
                               const c10::Stream &current);
  void launchPlain(const PlainCall &call, const Route &route);
  const c10::Stream &ownStreamFor(const c10::Stream &current);
  c10::Stream forkStream(const c10::Stream &current);
  c10::intrusive_ptr<CallWork> newWork(c10d::OpType type, const char *title,
                                       std::vector<at::Tensor> inputs,
                                       std::vector<at::Tensor> outputs,
                                       uint64_t number,
                                       std::chrono::milliseconds timeout);
  void *nativeOf(const c10::Stream &stream);
  void count(const Call &call, const std::string &reason);
  void runOwn(Call &call, void *stream);
  void runDelegated(Call &call, CallWork &work, const std::string &reason);
  void runSends(const std::vector<CallPtr> &calls, CallWork &work);
  WorkPtr refuse(const std::function<WorkPtr()> &call);
  WorkPtr transfer(c10d::OpType type, const char *name,
                   std::vector<at::Tensor> &tensors, int peer, int tag,
                   std::function<WorkPtr(c10d::Backend &,
                                         std::vector<at::Tensor> &, int, int)>
                       carry);
  DeviceState &side(const c10::Device &device);
  /// The states that exist. What is done with them may wait, for a delegate or
  /// for Python, and an abort must not wait for that: `mutex` is not held.
  std::vector<DeviceState *> madeSides();
  /// Throws failures that launches on that device have reported, and ends the
  /// group.
  void poll(const c10::Device &device);
  void beginAfterGpu(Call &call);
  void endWith(DeviceState &side);
  void dropGloo(std::chrono::steady_clock::time_point deadline);
  bool end(std::chrono::steady_clock::time_point deadline);
  void tell(c10d::OpType type, uint64_t number,
            std::chrono::steady_clock::time_point begun);
  void reportAtEnd(const Call &call, const c10::Stream &used,
                   std::chrono::steady_clock::time_point begun);
  BackendPtr makePart(const StorePtr &store, const std::vector<int> &ranks,
                      const std::string &name,
                      const c10::intrusive_ptr<Options> &opts);

  Settings settings;
  Queue queue;
  /// Waits for the end of calls on a GPU for which a hook must be called.
  Queue endings;
  std::map<c10::DeviceType, std::unique_ptr<DeviceState>> sides;
  std::shared_ptr<Messages> messages;
  Transfers transfersOnCpu;
  std::optional<c10::Stream> ownStream;
  Recorder recorder;
  /// Counters of CommsIR's own calls, by the address of their names.
  std::map<const char *, std::atomic<uint64_t> *> counted;
  /// State of one-step calls on a GPU that CommsIR runs, keyed by the addresses
  /// of title, reduction and type, and the counter of each.
  struct PlainKind {
    const char *title, *reduction, *type;
    std::atomic<uint64_t> *count;
  };
  std::vector<PlainKind> plainKinds;
  /// The GPU's state, once it has a group.
  std::atomic<DeviceState *> plainSide{nullptr};
  /// Driver handles of recently used streams.
  static constexpr size_t kNatives = 8;
  std::vector<std::pair<c10::Stream, void *>> natives;
  /// Guards the kinds, the streams and the group's own state, because threads
  /// may call concurrently.
  std::mutex plainMutex;
  std::optional<std::vector<CallPtr>> coalesced;
  /// Reason for refusing the first send or receive that cannot run.
  std::exception_ptr refused;
  std::atomic<uint64_t> sequence{0}, transfers{0};
  uint64_t forks = forksSoFar();
  /// Reason why the group can no longer be used; empty: it can.
  std::string ended;
  std::atomic<bool> hasEnded{false};
  mutable std::mutex mutex;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_BACKEND_H
