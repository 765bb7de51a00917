//===- BackendCollectives.cpp - Collectives of a process group ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include "runtime/torch/c10d/Interrupt.h"
#include "runtime/torch/c10d/TensorLists.h"

#include <bit>

using namespace commsir::torch_c10d;
using c10d::OpType;
using Self = commsir::torch_c10d::Backend;

//===----------------------------------------------------------------------===//
// One tensor
//===----------------------------------------------------------------------===//

WorkPtr Self::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) {
  const char *title = "commsir:broadcast";
  if (tensors.size() == 1 && mayBePlain(tensors.front()) &&
      opts.rootRank >= 0 && opts.rootRank < size_) {
    PlainCall plain{OpType::BROADCAST, title,        tensors.front(),
                    tensors.front(),   opts.timeout, opts.asyncOp,
                    opts.rootRank};
    if (plain.copies("broadcast", opts.rootRank))
      if (auto work = runPlain(plain))
        return *work;
  }
  auto call = newCall(OpType::BROADCAST, title, opts.timeout, opts.asyncOp);
  checkRoot(call->name, opts.rootRank, size_);
  call->root = opts.rootRank;
  bool isRoot = rank_ == opts.rootRank;
  call->refusesLate = true;
  at::Tensor tensor =
      call->both(single(call->name, tensors), /*in=*/isRoot, /*out=*/!isRoot);
  call->copyStep("broadcast", tensor, tensor, opts.rootRank);
  call->delegated = [=](c10d::Backend &other) {
    Tensors list{tensor};
    return other.broadcast(list, opts);
  };
  return submit(call);
}

WorkPtr Self::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) {
  const char *title = "commsir:all_reduce";
  if (tensors.size() == 1 && mayBePlain(tensors.front())) {
    PlainCall plain{OpType::ALLREDUCE, title,        tensors.front(),
                    tensors.front(),   opts.timeout, opts.asyncOp};
    if (plain.reduces("all_reduce", opts.reduceOp))
      if (auto work = runPlain(plain))
        return *work;
  }
  auto call = newCall(OpType::ALLREDUCE, title, opts.timeout, opts.asyncOp);
  at::Tensor tensor = single(call->name, tensors);
  auto passed = opts;
  if (tensor.layout() != at::kStrided) {
    call->notOwn = "sparse tensor";
    call->inputs = call->outputs = {tensor};
  } else {
    call->reduces = true;
    tensor = call->both(tensor);
    call->reduceStep("all_reduce", opts.reduceOp, tensor, tensor, size_);
    passed = call->delegatedOptions(opts);
  }
  call->delegated = [=](c10d::Backend &other) {
    Tensors list{tensor};
    return other.allreduce(list, passed);
  };
  return submit(call);
}

WorkPtr Self::allreduce_sparse(Tensors &tensors,
                               const c10d::AllreduceOptions &opts) {
  auto call = newCall(OpType::_ALLREDUCE_SPARSE, "commsir:all_reduce_sparse",
                      opts.timeout, opts.asyncOp);
  at::Tensor tensor = single(call->name, tensors);
  call->notOwn = "sparse tensor";
  call->inputs = call->outputs = {tensor};
  call->delegated = [=](c10d::Backend &other) {
    Tensors list{tensor};
    return other.allreduce_sparse(list, opts);
  };
  return submit(call);
}

WorkPtr Self::reduce(Tensors &tensors, const c10d::ReduceOptions &opts) {
  auto call =
      newCall(OpType::REDUCE, "commsir:reduce", opts.timeout, opts.asyncOp);
  checkRoot(call->name, opts.rootRank, size_);
  call->root = opts.rootRank;
  call->reduces = true;
  bool root = opts.rootRank == rank_;
  const at::Tensor &given = single(call->name, tensors);
  call->refusesLate = true;
  at::Tensor tensor = root ? call->both(given) : call->input(given);
  call->reduceStep("reduce", opts.reduceOp, tensor,
                   root ? tensor : at::Tensor(), size_, opts.rootRank, root);
  call->delegated =
      [=, passed = call->delegatedOptions(opts)](c10d::Backend &other) {
        Tensors list{tensor};
        return other.reduce(list, passed);
      };
  return submit(call);
}

WorkPtr Self::barrier(const c10d::BarrierOptions &opts) {
  auto call =
      newCall(OpType::BARRIER, "commsir:barrier", opts.timeout, opts.asyncOp);
  // As Gloo has it, numbers of GPUs say nothing where there is none.
  bool isNumbered = !opts.device_ids.empty() && at::hasCUDA();
  c10::Device device = opts.device.value_or(getBoundDeviceId().value_or(
      isNumbered ? c10::Device(at::kCUDA, opts.device_ids[0])
                 : c10::Device(at::kCPU)));
  at::Tensor token = at::zeros({1}, at::TensorOptions(at::kInt).device(device));
  call->kept.push_back(token);
  call->device = token.device();
  if (device.is_cpu())
    beginAfterGpu(*call);
  call->hostWaits = true;
  call->reduceStep("all_reduce", c10d::ReduceOp::SUM, token, token, size_);
  call->delegated = [=](c10d::Backend &other) { return other.barrier(opts); };
  return submit(call);
}

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

WorkPtr Self::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                        const c10d::AllgatherOptions &opts) {
  auto call = newCall(OpType::ALLGATHER, "commsir:all_gather", opts.timeout,
                      opts.asyncOp);
  const at::Tensor &given = single(call->name, inputs);
  TORCH_CHECK(outputs.size() == 1, "commsir: all_gather takes one list");
  checkCount(call->name, outputs.front().size(), size_);
  for (const at::Tensor &output : outputs.front())
    checkType(call->name, given, output);
  Tensors list = call->outputList(outputs.front());
  at::Tensor input =
      call->input(given, list, isPartOf(given, list[rank_], /*number=*/0));
  TORCH_CHECK(list[rank_].numel() == input.numel(), "commsir: all_gather of ",
              input.numel(), " elements into a tensor of ",
              list[rank_].numel());
  int64_t each = mostElements(list);
  copyLists(*call, "all_gather", {input}, list, each);
  compareSizes(*call, list);
  call->delegated = [=](c10d::Backend &other) {
    std::vector<Tensors> lists{list};
    Tensors one{input};
    return other.allgather(lists, one, opts);
  };
  return submit(call);
}

WorkPtr Self::_allgather_base(at::Tensor &output, at::Tensor &input,
                              const c10d::AllgatherOptions &opts) {
  const char *title = "commsir:all_gather_into_tensor";
  if (mayBePlain(input) && output.numel() == input.numel() * size_) {
    PlainCall plain{OpType::_ALLGATHER_BASE,
                    title,
                    input,
                    output,
                    opts.timeout,
                    opts.asyncOp};
    plain.rank = rank_;
    if (plain.copies("all_gather"))
      if (auto work = runPlain(plain))
        return *work;
  }
  auto call =
      newCall(OpType::_ALLGATHER_BASE, title, opts.timeout, opts.asyncOp);
  checkType(call->name, input, output);
  TORCH_CHECK(output.numel() == input.numel() * size_,
              "commsir: all_gather_into_tensor: output tensor size must be "
              "equal to world_size times input tensor size: got ",
              output.numel(), " and ", input.numel(), " elements for ", size_,
              " ranks");
  at::Tensor out = call->output(output);
  at::Tensor in = call->input(input, {out}, isPartOf(input, out, rank_));
  call->copyStep("all_gather", in, out);
  call->delegated = [=](c10d::Backend &other) mutable {
    return other._allgather_base(out, in, opts);
  };
  return submit(call);
}

WorkPtr Self::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                     const c10d::GatherOptions &opts) {
  auto call =
      newCall(OpType::GATHER, "commsir:gather", opts.timeout, opts.asyncOp);
  checkRoot(call->name, opts.rootRank, size_);
  call->root = opts.rootRank;
  const at::Tensor &given = single(call->name, inputs);
  std::vector<Tensors> lists = outputs;
  bool isOwn = false;
  if (rank_ == opts.rootRank) {
    TORCH_CHECK(lists.size() == 1, "commsir: gather: the root gives one list");
    checkCount(call->name, lists.front().size(), size_);
    for (const at::Tensor &output : lists.front()) {
      checkType(call->name, given, output);
      TORCH_CHECK(output.numel() == given.numel(), "commsir: gather of ",
                  given.numel(), " elements into a tensor of ", output.numel());
    }
    lists.front() = call->outputList(lists.front());
    isOwn = isPartOf(given, lists.front()[rank_], /*number=*/0);
  } else {
    TORCH_CHECK(lists.empty() || lists.front().empty(),
                "commsir: gather: only the root may pass outputs");
  }
  at::Tensor input = call->input(given, call->outputs, isOwn);
  copyLists(*call, "gather", {input}, call->outputs, input.numel(),
            opts.rootRank);
  call->delegated = [=](c10d::Backend &other) mutable {
    Tensors one{input};
    return other.gather(lists, one, opts);
  };
  return submit(call);
}

WorkPtr Self::gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                 const c10d::GatherOptions &opts) {
  auto call = newCall(OpType::GATHER, "commsir:gather_into_tensor",
                      opts.timeout, opts.asyncOp);
  checkRoot(call->name, opts.rootRank, size_);
  call->root = opts.rootRank;
  at::Tensor all;
  // On the root alone it is written, and has a size.
  std::vector<Tensors> lists;
  if (rank_ == opts.rootRank) {
    checkType(call->name, input, output);
    TORCH_CHECK(output.numel() == input.numel() * size_,
                "commsir: gather_into_tensor of ", input.numel(),
                " elements from each of ", size_, " ranks into a tensor of ",
                output.numel());
    all = call->output(output);
    lists.push_back(all.view({size_, -1}).unbind());
  }
  at::Tensor in = call->input(input, call->outputs,
                              all.defined() && isPartOf(input, all, rank_));
  call->copyStep("gather", in, all, opts.rootRank);
  call->delegated = [=](c10d::Backend &other) mutable {
    Tensors one{in.view({-1})};
    return other.gather(lists, one, opts);
  };
  return submit(call);
}

/// One input a rank, of which that of this rank may be the call's one output.
static Tensors inputList(Call &call, const Tensors &list, int rank) {
  for (size_t i = 0; i < list.size(); ++i)
    call.input(list[i], call.outputs,
               int(i) == rank && isPartOf(list[i], call.outputs.front(), 0));
  return call.inputs;
}

WorkPtr Self::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                      const c10d::ScatterOptions &opts) {
  auto call =
      newCall(OpType::SCATTER, "commsir:scatter", opts.timeout, opts.asyncOp);
  checkRoot(call->name, opts.rootRank, size_);
  call->root = opts.rootRank;
  at::Tensor output = call->output(single(call->name, outputs));
  std::vector<Tensors> lists = inputs;
  if (rank_ == opts.rootRank) {
    TORCH_CHECK(lists.size() == 1, "commsir: scatter: the root gives one list");
    checkCount(call->name, lists.front().size(), size_);
    for (const at::Tensor &input : lists.front()) {
      checkType(call->name, input, output);
      TORCH_CHECK(output.numel() == input.numel(), "commsir: scatter of ",
                  input.numel(), " elements into a tensor of ", output.numel());
    }
    lists.front() = inputList(*call, lists.front(), rank_);
  } else {
    TORCH_CHECK(lists.empty() || lists.front().empty(),
                "commsir: scatter: only the root may pass inputs");
  }
  copyLists(*call, "scatter", call->inputs, {output}, output.numel(),
            opts.rootRank);
  call->delegated = [=](c10d::Backend &other) mutable {
    Tensors one{output};
    return other.scatter(one, lists, opts);
  };
  return submit(call);
}

//===----------------------------------------------------------------------===//
// Reduce-scatter
//===----------------------------------------------------------------------===//

WorkPtr Self::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                             const c10d::ReduceScatterOptions &opts) {
  auto call = newCall(OpType::REDUCE_SCATTER, "commsir:reduce_scatter",
                      opts.timeout, opts.asyncOp);
  call->reduces = true;
  at::Tensor output = call->output(single(call->name, outputs));
  TORCH_CHECK(inputs.size() == 1, "commsir: reduce_scatter takes one list");
  checkCount(call->name, inputs.front().size(), size_);
  for (const at::Tensor &input : inputs.front())
    checkType(call->name, input, output);
  Tensors list = inputList(*call, inputs.front(), rank_);
  TORCH_CHECK(list[rank_].numel() == output.numel(),
              "commsir: reduce_scatter of ", list[rank_].numel(),
              " elements into a tensor of ", output.numel());
  int64_t each = mostElements(list);
  if (!output.is_cpu() || size_ == 1 ||
      !call->reducePartsStep("reduce_scatter", opts.reduceOp, list, output,
                             each)) {
    at::Tensor part =
        output.numel() == each ? output : unpacked(*call, {output}, each);
    call->reduceStep("reduce_scatter", opts.reduceOp, packed(*call, list, each),
                     part, size_);
  }
  compareSizes(*call, list);
  call->delegated =
      [=, passed = call->delegatedOptions(opts)](c10d::Backend &other) {
        std::vector<Tensors> lists{list};
        Tensors one{output};
        return other.reduce_scatter(one, lists, passed);
      };
  return submit(call);
}

WorkPtr Self::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                   const c10d::ReduceScatterOptions &opts) {
  const char *title = "commsir:reduce_scatter_tensor";
  if (mayBePlain(input) && input.numel() == output.numel() * size_) {
    PlainCall plain{OpType::_REDUCE_SCATTER_BASE,
                    title,
                    input,
                    output,
                    opts.timeout,
                    opts.asyncOp};
    plain.rank = rank_;
    if (plain.reduces("reduce_scatter", opts.reduceOp))
      if (auto work = runPlain(plain))
        return *work;
  }
  auto call =
      newCall(OpType::_REDUCE_SCATTER_BASE, title, opts.timeout, opts.asyncOp);
  checkType(call->name, input, output);
  TORCH_CHECK(input.numel() == output.numel() * size_,
              "commsir: reduce_scatter_tensor: input tensor must be the same "
              "size as output size times world size: got ",
              input.numel(), " and ", output.numel(), " elements for ", size_,
              " ranks");
  call->reduces = true;
  at::Tensor out = call->output(output);
  at::Tensor in = call->input(input, {out}, isPartOf(out, input, rank_));
  call->reduceStep("reduce_scatter", opts.reduceOp, in, out, size_);
  call->delegated =
      [=, passed = call->delegatedOptions(opts)](c10d::Backend &other) mutable {
        return other._reduce_scatter_base(out, in, passed);
      };
  return submit(call);
}

//===----------------------------------------------------------------------===//
// All-to-all
//===----------------------------------------------------------------------===//

/// Returns the sizes that each rank sends to each other, then those that it
/// expects.
static at::Tensor sizesOf(const Tensors &inputs, const Tensors &outputs) {
  std::vector<int64_t> sizes;
  for (const Tensors *list : {&inputs, &outputs})
    for (const at::Tensor &tensor : *list)
      sizes.push_back(tensor.numel());
  return at::tensor(sizes, at::kLong);
}

/// `all` is [rank][sends, expects][peer]: the same on all ranks, so that all of
/// them refuse what does not fit.
static void checkSizes(const char *name, const at::Tensor &all, int64_t ranks) {
  auto sizes = all.accessor<int64_t, 3>();
  for (int64_t from = 0; from < ranks; ++from)
    for (int64_t to = 0; to < ranks; ++to)
      if (sizes[from][0][to] != sizes[to][1][from])
        C10_THROW_ERROR(
            DistBackendError,
            c10::str("commsir: ", name, ": rank ", from, " sends ",
                     sizes[from][0][to], " elements to rank ", to,
                     ", which expects ", sizes[to][1][from],
                     ". Nothing was exchanged; give sizes that agree"));
}

/// One of four sizes in each power of two: there is a kernel for each, so that
/// programs whose sizes always vary do not compile forever.
static int64_t sizeClass(int64_t size) {
  auto below = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(size - 1, 1))));
  int64_t step = std::max<int64_t>(below / 4, 1);
  return (size + step - 1) / step * step;
}

/// Sizes that differ by peer: the ranks tell each other all of them, and
/// exchange pieces of the greatest.
static void exchangeUneven(const char *name, const Launch &launch,
                           const Tensors &outputs, const Tensors &inputs) {
  auto ranks = static_cast<int64_t>(inputs.size());
  at::Tensor own = sizesOf(inputs, outputs);
  at::Tensor all = at::empty({ranks, 2, ranks}, at::kLong);
  launch({"all_gather", "", "i64", 0, own.data_ptr(), own.numel(),
          all.data_ptr(), all.numel(), kSizes});
  checkSizes(name, all, ranks);
  Call exchange;
  exchange.name = name;
  copyLists(exchange, "all_to_all", inputs, outputs,
            sizeClass(all.max().item<int64_t>()));
  for (const auto *copies : {&exchange.before, &exchange.pack})
    for (const auto &copy : *copies)
      copy();
  launch(exchange.steps.front());
  for (const auto *copies : {&exchange.unpack, &exchange.after})
    for (const auto &copy : *copies)
      copy();
}

static Tensors pieces(const at::Tensor &tensor,
                      const std::vector<int64_t> &sizes, int ranks) {
  Tensors result;
  int64_t at = 0, rows = tensor.dim() ? tensor.size(0) : 1;
  for (int rank = 0; rank < ranks; ++rank) {
    int64_t size = sizes.empty() ? rows / ranks : sizes[rank];
    result.push_back(tensor.narrow(0, at, size));
    at += size;
  }
  return result;
}

/// How `tensor` is cut into rows for each rank; none: into equal parts.
static void checkSplits(const char *name, const char *what,
                        const std::vector<int64_t> &splits,
                        const at::Tensor &tensor, int ranks) {
  TORCH_CHECK(tensor.dim(), "commsir: ", name, ": the ", what,
              " has no dimension along which it could be cut");
  int64_t rows = tensor.size(0), left = rows;
  if (splits.empty()) {
    TORCH_CHECK(rows % ranks == 0, "commsir: ", name, ": the ", what, " has ",
                rows,
                " rows. Tensor's dim 0 does not divide equally across "
                "group size, which is ",
                ranks);
    return;
  }
  TORCH_CHECK(splits.size() == static_cast<size_t>(ranks), "commsir: ", name,
              ": ", what, "_split_sizes has ", splits.size(), " numbers for ",
              ranks, " ranks. Number of tensor splits not equal to group size");
  TORCH_CHECK(std::all_of(splits.begin(), splits.end(),
                          [](int64_t split) { return split >= 0; }),
              "commsir: ", name, ": ", what, "_split_sizes is ",
              at::IntArrayRef(splits), ": a number of rows cannot be negative");
  // What is left never falls below -1, so that no sum is too large.
  for (int64_t split : splits)
    left = split <= left ? left - split : -1;
  TORCH_CHECK(left == 0, "commsir: ", name, ": ", what, "_split_sizes is ",
              at::IntArrayRef(splits), ", and the ", what, " has ", rows,
              " rows. Split sizes doesn't match total dim 0 size");
}

static void uneven(Call &call, Tensors outputs, Tensors inputs) {
  if (inputs.size() == 1) {
    TORCH_CHECK(inputs.front().numel() == outputs.front().numel(),
                "commsir: ", call.name, " of ", inputs.front().numel(),
                " elements into ", outputs.front().numel());
    return call.copyStep("all_to_all", inputs.front(), outputs.front());
  }
  if (!inputs.front().is_cpu())
    call.notOwn = "sizes that differ by peer";
  int64_t ranks = static_cast<int64_t>(inputs.size());
  at::Tensor all = call.scratch(ranks, inputs.front().options());
  at::Tensor sizes = call.scratch(1, inputs.front().options().dtype(at::kLong));
  call.copyStep("all_gather", sizes, sizes);
  call.copyStep("all_to_all", all, all);
  call.own = [=, name = call.name](const Launch &launch) {
    exchangeUneven(name, launch, outputs, inputs);
  };
}

WorkPtr Self::alltoall_base(at::Tensor &output, at::Tensor &input,
                            std::vector<int64_t> &outputSplits,
                            std::vector<int64_t> &inputSplits,
                            const c10d::AllToAllOptions &opts) {
  const char *title = "commsir:all_to_all_single";
  bool isEven = outputSplits.empty() && inputSplits.empty() &&
                input.numel() == output.numel() && input.dim() &&
                output.dim() && input.size(0) % size_ == 0 &&
                output.size(0) % size_ == 0;
  if (isEven && mayBePlain(input)) {
    PlainCall plain{OpType::ALLTOALL_BASE, title,       input, output,
                    opts.timeout,          opts.asyncOp};
    if (plain.copies("all_to_all"))
      if (auto work = runPlain(plain))
        return *work;
  }
  auto call = newCall(OpType::ALLTOALL_BASE, title, opts.timeout, opts.asyncOp);
  checkType(call->name, input, output);
  checkSplits(call->name, "input", inputSplits, input, size_);
  checkSplits(call->name, "output", outputSplits, output, size_);
  bool isUneven = !outputSplits.empty() || !inputSplits.empty();
  at::Tensor out = call->output(output);
  at::Tensor in =
      call->input(input, {out}, !isUneven && isPartOf(input, out, 0));
  if (!isUneven) {
    TORCH_CHECK(in.numel() == out.numel(), "commsir: all_to_all_single of ",
                in.numel(), " elements into ", out.numel());
    call->copyStep("all_to_all", in, out);
  } else {
    uneven(*call, pieces(out, outputSplits, size_),
           pieces(in, inputSplits, size_));
  }
  call->delegated = [=, to = outputSplits,
                     from = inputSplits](c10d::Backend &other) mutable {
    return other.alltoall_base(out, in, to, from, opts);
  };
  return submit(call);
}

/// Gloo exchanges parts of one tensor, not lists.
static WorkPtr exchangeByGloo(c10d::Backend &gloo, const Tensors &outputs,
                              const Tensors &inputs,
                              const c10d::AllToAllOptions &opts) {
  Tensors flat;
  std::vector<int64_t> to, from;
  int64_t total = 0;
  for (const at::Tensor &input : inputs) {
    flat.push_back(input.reshape({-1}));
    from.push_back(input.numel());
  }
  for (const at::Tensor &output : outputs) {
    to.push_back(output.numel());
    total += output.numel();
  }
  at::Tensor in = at::cat(flat);
  at::Tensor out = at::empty({total}, in.options());
  gloo.alltoall_base(out, in, to, from, opts)->wait();
  int64_t at = 0;
  for (const at::Tensor &output : outputs)
    output.copy_(
        out.narrow(0, std::exchange(at, at + output.numel()), output.numel())
            .view(output.sizes()));
  return nullptr;
}

WorkPtr Self::alltoall(Tensors &outputs, Tensors &inputs,
                       const c10d::AllToAllOptions &opts) {
  auto call = newCall(OpType::ALLTOALL, "commsir:all_to_all", opts.timeout,
                      opts.asyncOp);
  checkCount(call->name, outputs.size(), size_);
  checkCount(call->name, inputs.size(), size_);
  for (const Tensors *list : {&outputs, &inputs})
    for (const at::Tensor &tensor : *list)
      checkType(call->name, inputs.front(), tensor);
  bool isOnCpu = inputs.front().is_cpu();
  call->outputList(outputs);
  for (const at::Tensor &tensor : inputs)
    call->input(tensor, call->outputs, /*isOwn=*/false);
  uneven(*call, call->outputs, call->inputs);
  call->delegated = [=, ins = call->inputs,
                     outs = call->outputs](c10d::Backend &other) mutable {
    return isOnCpu ? exchangeByGloo(other, outs, ins, opts)
                   : other.alltoall(outs, ins, opts);
  };
  return submit(call);
}

//===----------------------------------------------------------------------===//
// The barrier that names who is missing
//===----------------------------------------------------------------------===//

void Self::monitoredBarrier(const c10d::BarrierOptions &opts,
                            bool waitAllRanks) {
  checkUsable("monitored_barrier");
  auto timeout = opts.timeout.count() >= 0 ? opts.timeout : settings.timeout();
  Interruptible scope;
  // The words are Gloo's, which programs look for.
  auto complain = [&](std::vector<int64_t> missing) {
    if (!waitAllRanks)
      missing.resize(1);
    return c10::str("[Rank 0]: Rank", missing.size() > 1 ? "s " : " ",
                    c10::Join(", ", missing),
                    " failed to pass monitoredBarrier in ", timeout.count(),
                    " ms");
  };
  TORCH_CHECK(timeout.count() > 0 || rank_ != 0,
              "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms");
  auto met = settings.meet("commsir/monitored", timeout, "", complain);
  throwInterrupt();
  TORCH_CHECK(!met.epoch.empty() || rank_ != 0, met.failure);
  TORCH_CHECK(!met.epoch.empty(), "Rank ", rank_,
              " successfully reached monitoredBarrier, but received errors "
              "while waiting for send/recv from rank 0: ",
              met.failure);
}
