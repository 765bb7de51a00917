//===- BackendCoalesced.cpp - Calls that join several collectives ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of all collectives become one array, which one kernel exchanges.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"
#include "runtime/torch/c10d/TensorLists.h"

using namespace commsir::torch_c10d;
using c10d::OpType;
using Self = commsir::torch_c10d::Backend;

/// Each input has an output, and there is one.
static void requirePairs(const char *name, const Tensors &inputs,
                         const Tensors &outputs) {
  TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(),
              "commsir: ", name, " got ", inputs.size(), " inputs and ",
              outputs.size(), " outputs");
}

WorkPtr Self::allreduce_coalesced(Tensors &tensors,
                                  const c10d::AllreduceCoalescedOptions &opts) {
  auto call =
      newCall(OpType::ALLREDUCE_COALESCED, "commsir:all_reduce_coalesced",
              opts.timeout, opts.asyncOp);
  TORCH_CHECK(!tensors.empty(), "commsir: ", call->name, " got no tensors");
  call->reduces = true;
  int64_t elements = 0;
  for (const at::Tensor &tensor : tensors) {
    checkType(call->name, tensors.front(), tensor);
    elements += call->both(tensor).numel();
  }
  Tensors list = call->outputs;
  at::Tensor flat = call->scratch(elements, list.front().options());
  call->pack.push_back([=] { copyEach(partsLike(list, flat), list); });
  call->unpack.push_back([=] { copyEach(list, partsLike(list, flat)); });
  call->reduceStep("all_reduce", opts.reduceOp, flat, flat, size_);
  call->recordSizes(list);
  call->delegated =
      [=, passed = call->delegatedOptions(opts)](c10d::Backend &other) mutable {
        return other.allreduce_coalesced(list, passed);
      };
  return submit(call);
}

/// (One element is contiguous whatever its stride, which is in the way of a
/// view as bytes.)
static at::Tensor bytesOf(const at::Tensor &tensor) {
  return tensor.contiguous().as_strided({tensor.numel()}, {1}).view(at::kByte);
}

static int64_t wordsOf(const at::Tensor &tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + 7) / 8;
}

/// The tensors of each rank, as bytes behind each other, through one gather.
static void gatherWords(Call &call, const Tensors &inputs,
                        const std::vector<Tensors> &outputs, int ranks) {
  int64_t words = 0;
  for (const at::Tensor &input : inputs)
    words += wordsOf(input);
  auto options = inputs.front().options().dtype(at::kLong);
  at::Tensor in = call.scratch(words, options);
  at::Tensor out = call.scratch(words * ranks, options);
  auto bytes = [](const at::Tensor &flat, int64_t word,
                  const at::Tensor &like) {
    return flat.view(at::kByte).narrow(0, 8 * word,
                                       static_cast<int64_t>(like.nbytes()));
  };
  call.pack.push_back([=] {
    Tensors to, from;
    int64_t at = 0;
    for (const at::Tensor &input : inputs) {
      to.push_back(bytes(in, std::exchange(at, at + wordsOf(input)), input));
      from.push_back(bytesOf(input));
    }
    copyEach(to, from);
  });
  call.unpack.push_back([=] {
    Tensors to, from;
    int64_t at = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < inputs.size(); ++i) {
        const at::Tensor &output = outputs[i][rank];
        from.push_back(
            bytes(out, std::exchange(at, at + wordsOf(inputs[i])), output)
                .view(output.scalar_type()));
        to.push_back(output);
      }
    copyEach(to, from);
  });
  call.copyStep("all_gather", in, out);
  call.recordSizes(inputs);
}

WorkPtr Self::allgather_coalesced(std::vector<Tensors> &outputs,
                                  Tensors &inputs,
                                  const c10d::AllgatherOptions &opts) {
  auto call =
      newCall(OpType::ALLGATHER_COALESCED, "commsir:all_gather_coalesced",
              opts.timeout, opts.asyncOp);
  TORCH_CHECK(!inputs.empty(), "commsir: ", call->name, " got no tensors");
  checkCount(call->name, outputs.size(), size_);
  Tensors written;
  for (const at::Tensor &input : inputs)
    call->input(input);
  for (const Tensors &list : outputs) {
    TORCH_CHECK(list.size() == inputs.size(), "commsir: ", call->name, " got ",
                inputs.size(), " inputs and ", list.size(),
                " outputs of a rank");
    for (size_t i = 0; i < list.size(); ++i) {
      checkType(call->name, inputs[i], list[i]);
      TORCH_CHECK(list[i].numel() == inputs[i].numel(), "commsir: ", call->name,
                  ": output ", i, " is not as large as its input");
      written.push_back(list[i]);
    }
  }
  // c10d's lists are one a rank; the gather wants one a tensor.
  std::vector<Tensors> perTensor(inputs.size()), perRank(size_);
  written = call->outputList(written);
  for (size_t i = 0; i < written.size(); ++i) {
    perRank[i / inputs.size()].push_back(written[i]);
    perTensor[i % inputs.size()].push_back(written[i]);
  }
  gatherWords(*call, call->inputs, perTensor, size_);
  call->delegated = [opts, ins = call->inputs,
                     outs = perRank](c10d::Backend &other) mutable {
    return other.allgather_coalesced(outs, ins, opts);
  };
  return submit(call);
}

WorkPtr
Self::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                      const c10d::AllgatherOptions &opts) {
  auto call =
      newCall(OpType::COALESCED, "commsir:all_gather_into_tensor_coalesced",
              opts.timeout, opts.asyncOp);
  requirePairs(call->name, inputs, outputs);
  std::vector<Tensors> perTensor;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * size_,
                "commsir: ", call->name, ": output ", i, " must hold ", size_,
                " times its input");
    checkType(call->name, inputs[i], outputs[i]);
    call->input(inputs[i]);
  }
  call->outputList(outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor &out = call->outputs[i];
    Tensors parts;
    for (int rank = 0; rank < size_; ++rank)
      parts.push_back(
          out.view({-1})
              .narrow(0, rank * inputs[i].numel(), inputs[i].numel())
              .view(inputs[i].sizes()));
    perTensor.push_back(std::move(parts));
  }
  gatherWords(*call, call->inputs, perTensor, size_);
  call->delegated = [opts, ins = call->inputs,
                     outs = call->outputs](c10d::Backend &other) mutable {
    return other.allgather_into_tensor_coalesced(outs, ins, opts);
  };
  return submit(call);
}

WorkPtr
Self::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                      const c10d::ReduceScatterOptions &opts) {
  auto call =
      newCall(OpType::COALESCED, "commsir:reduce_scatter_tensor_coalesced",
              opts.timeout, opts.asyncOp);
  requirePairs(call->name, inputs, outputs);
  call->reduces = true;
  int64_t each = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkType(call->name, inputs.front(), inputs[i]);
    checkType(call->name, inputs.front(), outputs[i]);
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * size_,
                "commsir: ", call->name, ": input ", i, " must hold ", size_,
                " times its output");
    call->input(inputs[i]);
    each += outputs[i].numel();
  }
  Tensors ins = call->inputs, outs = call->outputList(outputs);
  at::Tensor in = call->scratch(each * size_, ins.front().options());
  at::Tensor out = call->scratch(each, ins.front().options());
  call->pack.push_back([=, ranks = size_] {
    int64_t at = 0;
    for (const at::Tensor &input : ins) {
      int64_t part = input.numel() / ranks;
      in.view({ranks, -1}).narrow(1, at, part).copy_(input.view({ranks, -1}));
      at += part;
    }
  });
  call->unpack.push_back([=] { copyEach(outs, partsLike(outs, out)); });
  call->reduceStep("reduce_scatter", opts.reduceOp, in, out, size_);
  call->recordSizes(outs);
  call->delegated =
      [=, passed = call->delegatedOptions(opts)](c10d::Backend &other) mutable {
        return other.reduce_scatter_tensor_coalesced(outs, ins, passed);
      };
  return submit(call);
}
