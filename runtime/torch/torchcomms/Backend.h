//===- Backend.h - A backend of torchcomms ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes torchcomms' calls to a process group of runtime/torch/c10d, so that
// both share code paths and counters. torchcomms' headers are distributed with
// its sources, so that frontend/commsir/torch/torchcomms.py builds this code
// where it is used.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_TORCHCOMMS_BACKEND_H
#define COMMSIR_RUNTIME_TORCH_TORCHCOMMS_BACKEND_H

#include <comms/torchcomms/TorchCommBackend.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <map>

namespace commsir::torchcomms {

using GroupPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
using WorkPtr = c10::intrusive_ptr<torch::comms::TorchWork>;

/// Python functions that the backend needs.
struct PythonHooks {
  /// Returns the store of torchrun's environment, for a communicator name.
  std::function<StorePtr(const std::string &)> connect;
  /// Makes a process group of this rank from store, rank, size, timeout and
  /// name.
  std::function<GroupPtr(const StorePtr &, int, int, std::chrono::milliseconds,
                         const std::string &)>
      make;
  /// Whether torch made the call that this thread is in.
  std::function<bool()> isFromTorch;
  /// CommsIR's version.
  std::string version;
};

class Backend : public torch::comms::TorchCommBackend {
public:
  explicit Backend(std::shared_ptr<const PythonHooks> maker)
      : maker(std::move(maker)) {}

  /// Needs only the store; ranks meet at the first call.
  void init(at::Device device, const std::string &name,
            const torch::comms::CommOptions &options) override;
  /// Waits for all calls and ends the communicator, once.
  void finalize() override;
  int getRank() const override { return used().getRank(); }
  int getSize() const override { return used().getSize(); }
  std::string_view getBackendName() const override { return "commsir"; }
  std::string_view getBackendVersion() const override { return maker->version; }
  std::string_view getCommName() const override { return name; }
  const torch::comms::CommOptions &getOptions() const override {
    return options;
  }
  const at::Device &getDevice() const override { return device; }

  WorkPtr send(const at::Tensor &tensor, int to, bool async,
               const torch::comms::SendOptions &options) override;
  WorkPtr recv(at::Tensor &tensor, int from, bool async,
               const torch::comms::RecvOptions &options) override;
  WorkPtr
  batch_op_issue(const std::vector<torch::comms::BatchSendRecv::P2POp> &ops,
                 bool async,
                 const torch::comms::BatchP2POptions &options) override;
  WorkPtr broadcast(at::Tensor &tensor, int root, bool async,
                    const torch::comms::BroadcastOptions &options) override;
  WorkPtr all_reduce(at::Tensor &tensor, const torch::comms::ReduceOp &op,
                     bool async,
                     const torch::comms::AllReduceOptions &options) override;
  WorkPtr reduce(const at::Tensor &tensor, int root,
                 const torch::comms::ReduceOp &op, bool async,
                 const torch::comms::ReduceOptions &options) override;
  WorkPtr all_gather(const std::vector<at::Tensor> &outputs,
                     const at::Tensor &input, bool async,
                     const torch::comms::AllGatherOptions &options) override;
  WorkPtr all_gather_v(const std::vector<at::Tensor> &outputs,
                       const at::Tensor &input, bool async,
                       const torch::comms::AllGatherOptions &options) override;
  WorkPtr all_gather_single(
      at::Tensor &output, const at::Tensor &input, bool async,
      const torch::comms::AllGatherSingleOptions &options) override;
  WorkPtr
  reduce_scatter(at::Tensor &output, const std::vector<at::Tensor> &inputs,
                 const torch::comms::ReduceOp &op, bool async,
                 const torch::comms::ReduceScatterOptions &options) override;
  WorkPtr
  reduce_scatter_v(at::Tensor &output, const std::vector<at::Tensor> &inputs,
                   const torch::comms::ReduceOp &op, bool async,
                   const torch::comms::ReduceScatterOptions &options) override;
  WorkPtr reduce_scatter_single(
      at::Tensor &output, const at::Tensor &input,
      const torch::comms::ReduceOp &op, bool async,
      const torch::comms::ReduceScatterSingleOptions &options) override;
  WorkPtr all_to_all_single(
      at::Tensor &output, const at::Tensor &input, bool async,
      const torch::comms::AllToAllSingleOptions &options) override;
  WorkPtr all_to_all_v_single(
      at::Tensor &output, const at::Tensor &input,
      const std::vector<uint64_t> &outputSplits,
      const std::vector<uint64_t> &inputSplits, bool async,
      const torch::comms::AllToAllvSingleOptions &options) override;
  WorkPtr all_to_all(const std::vector<at::Tensor> &outputs,
                     const std::vector<at::Tensor> &inputs, bool async,
                     const torch::comms::AllToAllOptions &options) override;
  WorkPtr barrier(bool async,
                  const torch::comms::BarrierOptions &options) override;
  WorkPtr scatter(at::Tensor &output, const std::vector<at::Tensor> &inputs,
                  int root, bool async,
                  const torch::comms::ScatterOptions &options) override;
  WorkPtr gather(const std::vector<at::Tensor> &outputs,
                 const at::Tensor &input, int root, bool async,
                 const torch::comms::GatherOptions &options) override;

  /// Returns null if `ranks` is empty: this rank is in no part.
  std::shared_ptr<torch::comms::TorchCommBackend>
  split(const std::vector<int> &ranks, const std::string &name,
        const torch::comms::CommOptions &options) override;

  bool isInitialized() const override {
    return group && !isOver && !hasAborted;
  }
  void setTimeout(std::chrono::milliseconds timeout) override;
  bool isAbortSupported() const override { return true; }
  bool isAborted() const override { return hasAborted; }
  /// Ends all waits of this rank; the other ranks' waits end too. Thread-safe.
  void abort() override;

private:
  c10d::Backend &used() const;
  /// Same, for calls; throws an error with the remedy if there will be none.
  c10d::Backend &usable() const;
  /// `where`: the device of the tensors, which need not be the communicator's,
  /// because torch.distributed makes one communicator for both device types.
  WorkPtr finish(c10::intrusive_ptr<c10d::Work> inner, const at::Device &where,
                 bool async, bool pointToPoint,
                 std::chrono::milliseconds limit);
  /// Runs a collective: calls `issue` with c10d's options for torchcomms'
  /// options.
  template <typename C10dOptions, typename Options>
  WorkPtr collective(const at::Device &where, bool async,
                     const Options &options,
                     const std::function<c10::intrusive_ptr<c10d::Work>(
                         c10d::Backend &, C10dOptions &)> &issue);

  std::shared_ptr<const PythonHooks> maker;
  StorePtr store;
  GroupPtr group;
  at::Device device{at::kCPU};
  std::string name;
  torch::comms::CommOptions options;
  /// Timeout of future calls.
  std::atomic<std::chrono::milliseconds> timeout{std::chrono::milliseconds(0)};
  /// Made by torch.distributed for a group of its own.
  bool isOfTorch = false;
  /// Number of splits per name.
  std::map<std::string, int> splits;
  std::atomic<bool> hasAborted{false}, isOver{false};
};

} // namespace commsir::torchcomms

#endif // COMMSIR_RUNTIME_TORCH_TORCHCOMMS_BACKEND_H
