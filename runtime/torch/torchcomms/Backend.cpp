//===- Backend.cpp - A backend of torchcomms ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/torchcomms/Backend.h"

#include "runtime/torch/c10d/Capture.h"
#include "runtime/torch/torchcomms/Work.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/hash.h>
#include <comms/torchcomms/utils/Utils.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <set>

using namespace commsir::torchcomms;
using namespace torch::comms;
using std::chrono::milliseconds;
using Ours = commsir::torchcomms::Backend;
using Tensors = std::vector<at::Tensor>;
using InnerPtr = c10::intrusive_ptr<c10d::Work>;

static c10d::ReduceOp toC10d(const ReduceOp &op) {
  switch (op.type()) {
  case ReduceOp::RedOpType::SUM:
    return c10d::ReduceOp::SUM;
  case ReduceOp::RedOpType::PRODUCT:
    return c10d::ReduceOp::PRODUCT;
  case ReduceOp::RedOpType::MIN:
    return c10d::ReduceOp::MIN;
  case ReduceOp::RedOpType::MAX:
    return c10d::ReduceOp::MAX;
  case ReduceOp::RedOpType::BAND:
    return c10d::ReduceOp::BAND;
  case ReduceOp::RedOpType::BOR:
    return c10d::ReduceOp::BOR;
  case ReduceOp::RedOpType::BXOR:
    return c10d::ReduceOp::BXOR;
  case ReduceOp::RedOpType::AVG:
    return c10d::ReduceOp::AVG;
  case ReduceOp::RedOpType::PREMUL_SUM:
    return std::visit(
        [](const auto &factor) { return c10d::makeNCCLPreMulSum(factor); },
        *op.factor());
  }
  TORCH_CHECK(false, "commsir: no reduction number ",
              static_cast<int>(op.type()),
              " is known; this torchcomms is newer");
}

static std::vector<int64_t> toC10d(const std::vector<uint64_t> &splits) {
  return {splits.begin(), splits.end()};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// For calls.
c10d::Backend &Ours::usable() const {
  c10d::Backend &backend = used();
  TORCH_CHECK(!isOver, "commsir: communicator ", name,
              " has been finalized: make another one by torchcomms.new_comm");
  TORCH_CHECK(!hasAborted, "commsir: communicator ", name,
              " has been aborted: make another one by torchcomms.new_comm");
  return backend;
}

c10d::Backend &Ours::used() const {
  TORCH_CHECK(group, "commsir: communicator ", name,
              " is not initialized: make communicators by torchcomms.new_comm");
  return *group;
}

WorkPtr Ours::finish(InnerPtr inner, const at::Device &where, bool async,
                     bool pointToPoint, milliseconds limit) {
  bool onGpu = !where.is_cpu(), isNothing = !inner;
  auto work = c10::make_intrusive<Work>(std::move(inner), where, pointToPoint,
                                        limit, timeout.load());
  // What torch makes of a collective on the CPU has a future that only a hook
  // of torchcomms' completes, which another thread may come before. Its sends
  // and receives must not wait here, and nobody asks for their futures.
  // Of an empty batch there is nothing to wait for.
  bool endsHere =
      !async || isNothing ||
      (!onGpu && !pointToPoint && (isOfTorch || maker->isFromTorch()));
  // What is recorded into a graph is over for the program, too.
  if (endsHere || (onGpu && torch_c10d::isCapturing(where)))
    work->finish();
  else
    StatusWatcher::get().add(work);
  return work;
}

template <typename C10dOptions, typename Options>
WorkPtr Ours::collective(
    const at::Device &where, bool async, const Options &given,
    const std::function<InnerPtr(c10d::Backend &, C10dOptions &)> &issue) {
  C10dOptions opts;
  if (given.timeout != torch::comms::kNoTimeout)
    opts.timeout = given.timeout;
  opts.asyncOp = async;
  return finish(issue(usable(), opts), where, async, /*pointToPoint=*/false,
                given.timeout);
}

WorkPtr Ours::send(const at::Tensor &tensor, int to, bool async,
                   const SendOptions &options) {
  Tensors tensors{tensor};
  return finish(usable().send(tensors, to, options.tag), tensor.device(), async,
                /*pointToPoint=*/true, options.timeout);
}

WorkPtr Ours::recv(at::Tensor &tensor, int from, bool async,
                   const RecvOptions &options) {
  Tensors tensors{tensor};
  return finish(usable().recv(tensors, from, options.tag), tensor.device(),
                async,
                /*pointToPoint=*/true, options.timeout);
}

WorkPtr Ours::batch_op_issue(const std::vector<BatchSendRecv::P2POp> &ops,
                             bool async, const BatchP2POptions &options) {
  c10d::Backend &backend = usable();
  backend.startCoalescing();
  // One that is refused is told by endCoalescing, which has to be reached.
  for (const BatchSendRecv::P2POp &op : ops) {
    Tensors tensors{op.tensor};
    if (op.type == BatchSendRecv::P2POp::OpType::SEND)
      backend.send(tensors, op.peer, /*tag=*/0);
    else
      backend.recv(tensors, op.peer, /*tag=*/0);
  }
  return finish(backend.endCoalescing(),
                ops.empty() ? device : ops.front().tensor.device(), async,
                /*pointToPoint=*/true, options.timeout);
}

WorkPtr Ours::broadcast(at::Tensor &tensor, int root, bool async,
                        const BroadcastOptions &options) {
  return collective<c10d::BroadcastOptions>(
      tensor.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.rootRank = root;
        Tensors tensors{tensor};
        return backend.broadcast(tensors, opts);
      });
}

WorkPtr Ours::all_reduce(at::Tensor &tensor, const ReduceOp &op, bool async,
                         const AllReduceOptions &options) {
  return collective<c10d::AllreduceOptions>(
      tensor.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.reduceOp = toC10d(op);
        Tensors tensors{tensor};
        return backend.allreduce(tensors, opts);
      });
}

WorkPtr Ours::reduce(const at::Tensor &tensor, int root, const ReduceOp &op,
                     bool async, const ReduceOptions &options) {
  return collective<c10d::ReduceOptions>(
      tensor.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.reduceOp = toC10d(op);
        opts.rootRank = root;
        Tensors tensors{tensor};
        return backend.reduce(tensors, opts);
      });
}

WorkPtr Ours::all_gather(const Tensors &outputs, const at::Tensor &input,
                         bool async, const AllGatherOptions &options) {
  return collective<c10d::AllgatherOptions>(
      input.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        std::vector<Tensors> lists{outputs};
        Tensors inputs{input};
        return backend.allgather(lists, inputs, opts);
      });
}

WorkPtr Ours::all_gather_v(const Tensors &outputs, const at::Tensor &input,
                           bool async, const AllGatherOptions &options) {
  return all_gather(outputs, input, async, options);
}

WorkPtr Ours::all_gather_single(at::Tensor &output, const at::Tensor &input,
                                bool async,
                                const AllGatherSingleOptions &options) {
  return collective<c10d::AllgatherOptions>(
      input.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        at::Tensor in = input;
        return backend._allgather_base(output, in, opts);
      });
}

WorkPtr Ours::reduce_scatter(at::Tensor &output, const Tensors &inputs,
                             const ReduceOp &op, bool async,
                             const ReduceScatterOptions &options) {
  return collective<c10d::ReduceScatterOptions>(
      output.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.reduceOp = toC10d(op);
        Tensors outputs{output};
        std::vector<Tensors> lists{inputs};
        return backend.reduce_scatter(outputs, lists, opts);
      });
}

WorkPtr Ours::reduce_scatter_v(at::Tensor &output, const Tensors &inputs,
                               const ReduceOp &op, bool async,
                               const ReduceScatterOptions &options) {
  return reduce_scatter(output, inputs, op, async, options);
}

WorkPtr Ours::reduce_scatter_single(at::Tensor &output, const at::Tensor &input,
                                    const ReduceOp &op, bool async,
                                    const ReduceScatterSingleOptions &options) {
  return collective<c10d::ReduceScatterOptions>(
      output.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.reduceOp = toC10d(op);
        at::Tensor in = input;
        return backend._reduce_scatter_base(output, in, opts);
      });
}

WorkPtr Ours::all_to_all_single(at::Tensor &output, const at::Tensor &input,
                                bool async,
                                const AllToAllSingleOptions &options) {
  AllToAllvSingleOptions uneven;
  uneven.timeout = options.timeout;
  return all_to_all_v_single(output, input, {}, {}, async, uneven);
}

WorkPtr Ours::all_to_all_v_single(at::Tensor &output, const at::Tensor &input,
                                  const std::vector<uint64_t> &outputSplits,
                                  const std::vector<uint64_t> &inputSplits,
                                  bool async,
                                  const AllToAllvSingleOptions &options) {
  return collective<c10d::AllToAllOptions>(
      output.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        at::Tensor in = input;
        auto outs = toC10d(outputSplits), ins = toC10d(inputSplits);
        return backend.alltoall_base(output, in, outs, ins, opts);
      });
}

WorkPtr Ours::all_to_all(const Tensors &outputs, const Tensors &inputs,
                         bool async, const AllToAllOptions &options) {
  return collective<c10d::AllToAllOptions>(
      outputs.empty() ? device : outputs.front().device(), async, options,
      [&](c10d::Backend &backend, auto &opts) {
        Tensors outs = outputs, ins = inputs;
        return backend.alltoall(outs, ins, opts);
      });
}

WorkPtr Ours::barrier(bool async, const BarrierOptions &options) {
  return collective<c10d::BarrierOptions>(
      device, async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.device = device;
        return backend.barrier(opts);
      });
}

WorkPtr Ours::scatter(at::Tensor &output, const Tensors &inputs, int root,
                      bool async, const ScatterOptions &options) {
  return collective<c10d::ScatterOptions>(
      output.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.rootRank = root;
        Tensors outputs{output};
        std::vector<Tensors> lists;
        if (root == getRank())
          lists.push_back(inputs);
        return backend.scatter(outputs, lists, opts);
      });
}

WorkPtr Ours::gather(const Tensors &outputs, const at::Tensor &input, int root,
                     bool async, const GatherOptions &options) {
  return collective<c10d::GatherOptions>(
      input.device(), async, options, [&](c10d::Backend &backend, auto &opts) {
        opts.rootRank = root;
        std::vector<Tensors> lists;
        if (root == getRank())
          lists.push_back(outputs);
        Tensors inputs{input};
        return backend.gather(lists, inputs, opts);
      });
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

/// Without an index, a rank's GPU is the one of its number, and the current one
/// from then on: so it is with torchcomms' backend for NCCL.
static at::Device deviceOf(at::Device asked, int rank) {
  if (asked.is_cpu() || asked.has_index())
    return asked;
  c10::impl::VirtualGuardImpl guard(asked.type());
  TORCH_CHECK(guard.deviceCount() > 0, "commsir: there is no device ",
              asked.str(),
              " here: name another, such as torch.device(\"cpu\")");
  at::Device own(asked.type(),
                 static_cast<at::DeviceIndex>(rank % guard.deviceCount()));
  guard.setDevice(own);
  return own;
}

void Ours::init(at::Device at, const std::string &called,
                const CommOptions &given) {
  TORCH_CHECK(!group, "commsir: communicator ", name,
              " is initialized already");
  auto [rank, size] = query_ranksize();
  store = given.store ? given.store : maker->connect(called);
  group = maker->make(store, rank, size, given.timeout, called);
  device = deviceOf(at, rank);
  name = called;
  options = given;
  timeout = given.timeout;
  isOfTorch = maker->isFromTorch();
}

void Ours::finalize() {
  used();
  // torchcomms logs this one, which a TORCH_CHECK would write a page into.
  if (isOver.exchange(true))
    throw std::runtime_error("commsir: communicator " + name +
                             " has been finalized already");
  group->shutdown();
}

std::shared_ptr<TorchCommBackend> Ours::split(const std::vector<int> &ranks,
                                              const std::string &called,
                                              const CommOptions &given) {
  if (ranks.empty())
    return nullptr;
  std::set<int> members(ranks.begin(), ranks.end());
  TORCH_CHECK(members.size() == ranks.size() && *members.begin() >= 0 &&
                  *members.rbegin() < getSize() && members.count(getRank()),
              "commsir: rank ", getRank(), " of ", name, " (ranks 0 to ",
              getSize() - 1, ") cannot be in a part of ranks [",
              c10::Join(", ", ranks),
              "]: name each once, including the caller, or none if the caller "
              "is in no part");
  auto opts =
      c10::make_intrusive<c10d::Backend::Options>("commsir", given.timeout);
  // Others may be called the same, of other ranks and of these.
  std::string place = called + "." + c10::sha1(c10::Join(",", ranks)).str();
  place += "." + std::to_string(++splits[place]);
  opts->group_name = name + "." + place;
  auto part = std::make_shared<Ours>(maker);
  part->group = usable().split(store, ranks, opts);
  part->store = c10::make_intrusive<c10d::PrefixStore>("split/" + place, store);
  part->device = device;
  part->name = called;
  part->options = given;
  part->timeout = given.timeout;
  part->isOfTorch = isOfTorch;
  return part;
}

void Ours::setTimeout(milliseconds given) {
  used().setTimeout(given);
  timeout = given;
}

void Ours::abort() {
  used();
  if (hasAborted.exchange(true))
    return;
  runAbortHooks();
  group->abort();
}
