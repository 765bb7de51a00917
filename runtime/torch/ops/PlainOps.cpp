//===- PlainOps.cpp - torch.ops.commsir: plain collectives ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives as torch ops over LibTorch's stable ABI: one binary for
// torch 2.11 and newer. An op runs on the current stream and is done, for that
// stream, when it returns: there is nothing to wait for.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/Interrupt.h"
#include "runtime/torch/ops/OpCall.h"
#include "runtime/torch/ops/Tensors.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

using namespace commsir::torch_ops;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// The input, or a copy where it shares memory with the output: that is read
/// before it is written only if the one is the other, or this rank's part of
/// it.
static Tensor copyIfOverlapping(const Tensor &input, const Tensor &output,
                                int64_t rank) {
  Extent in(input), out(output);
  int64_t part = std::min(in.size(), out.size());
  bool isInPlace = in.size() == out.size() ? in.begin == out.begin
                   : in.size() < out.size()
                       ? in.begin == out.begin + rank * part
                       : out.begin == in.begin + rank * part;
  return isInPlace || !in.meets(out) ? input : torch::stable::clone(input);
}

static void run(const char *op, const Tensor &input, const std::string &reduce,
                int64_t root, const std::string &groupName, const Tensor &out) {
  LockedGroup &used = groupOf(input, groupName);
  Tensor in = copyIfOverlapping(
      reduce.empty() ? dense(input) : calculable(input), out, used.rank);
  ScalarType type = in.scalar_type(), part = partOf(type, reduce.empty());
  std::string reduction = reductionFor(type, reduce);
  int64_t parts = partOf(type) == type ? 1 : 2;
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = op;
  call.reduction = reduction.c_str();
  call.type = typeName(part);
  call.type_name = givenName(type);
  call.root = root;
  call.input = in.data_ptr();
  call.input_elements = in.numel() * parts;
  call.output = out.data_ptr();
  call.output_elements = out.numel() * parts;
  std::lock_guard<std::mutex> lock(used.mutex);
  Interruptible scope;
  check(commsir_group_collective(used.group, &call, streamOf(in)));
}

/// Like `input`, with `numerator / denominator` times the rows.
static Tensor emptyRows(const Tensor &input, int64_t numerator,
                        int64_t denominator) {
  return emptyOf(input, shapeOfRows(input, numerator, denominator));
}

static Tensor empty(const Tensor &like) {
  return emptyOf(like, {like.sizes().begin(), like.sizes().end()});
}

static void allReduceOut(Tensor input, std::string reduce, std::string group,
                         Tensor out) {
  requireResult(out, input, 1, 1);
  run("all_reduce", input, reduce, 0, group, out);
}
static Tensor allReduce(Tensor input, std::string reduce, std::string group) {
  Tensor out = empty(input);
  run("all_reduce", input, reduce, 0, group, out);
  return out;
}
static void allGatherOut(Tensor input, std::string group, Tensor out) {
  requireResult(out, input, groupOf(input, group).ranks, 1);
  run("all_gather", input, "", 0, group, out);
}
static Tensor allGather(Tensor input, std::string group) {
  Tensor out = emptyRows(input, groupOf(input, group).ranks, 1);
  run("all_gather", input, "", 0, group, out);
  return out;
}
static void reduceScatterOut(Tensor input, std::string reduce,
                             std::string group, Tensor out) {
  requireResult(out, input, 1, groupOf(input, group).ranks);
  run("reduce_scatter", input, reduce, 0, group, out);
}
static Tensor reduceScatter(Tensor input, std::string reduce,
                            std::string group) {
  Tensor out = emptyRows(input, 1, groupOf(input, group).ranks);
  run("reduce_scatter", input, reduce, 0, group, out);
  return out;
}
/// Parts are rows: none is cut.
static void requireParts(const Tensor &input, const std::string &group) {
  requireShares(input.dim() ? input.size(0) : 1, groupOf(input, group).ranks);
}
static void allToAllOut(Tensor input, std::string group, Tensor out) {
  requireParts(input, group);
  requireResult(out, input, 1, 1);
  run("all_to_all", input, "", 0, group, out);
}
static Tensor allToAll(Tensor input, std::string group) {
  requireParts(input, group);
  Tensor out = empty(input);
  run("all_to_all", input, "", 0, group, out);
  return out;
}
static void broadcastOut(Tensor input, int64_t root, std::string group,
                         Tensor out) {
  requireResult(out, input, 1, 1);
  run("broadcast", input, "", root, group, out);
}
static Tensor broadcast(Tensor input, int64_t root, std::string group) {
  Tensor out = empty(input);
  run("broadcast", input, "", root, group, out);
  return out;
}

/// Measures the cost of an op itself.
static Tensor nothing(Tensor input, std::string, std::string) {
  return empty(input);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

STABLE_TORCH_LIBRARY_FRAGMENT(commsir, m) {
  m.def("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor");
  m.def("all_reduce.out(Tensor input, str reduce_op, str group_name, *, "
        "Tensor(a!) out) -> ()");
  m.def("all_gather(Tensor input, str group_name) -> Tensor");
  m.def("all_gather.out(Tensor input, str group_name, *, Tensor(a!) out) -> "
        "()");
  m.def("reduce_scatter(Tensor input, str reduce_op, str group_name) -> "
        "Tensor");
  m.def("reduce_scatter.out(Tensor input, str reduce_op, str group_name, *, "
        "Tensor(a!) out) -> ()");
  m.def("all_to_all(Tensor input, str group_name) -> Tensor");
  m.def("all_to_all.out(Tensor input, str group_name, *, Tensor(a!) out) -> "
        "()");
  m.def("broadcast(Tensor input, int root, str group_name) -> Tensor");
  m.def("broadcast.out(Tensor input, int root, str group_name, *, Tensor(a!) "
        "out) -> ()");
  m.def("_nothing(Tensor input, str reduce_op, str group_name) -> Tensor");
}

#define COMMSIR_IMPLEMENT(KEY)                                                 \
  STABLE_TORCH_LIBRARY_IMPL(commsir, KEY, m) {                                 \
    m.impl("all_reduce", TORCH_BOX(&allReduce));                               \
    m.impl("all_reduce.out", TORCH_BOX(&allReduceOut));                        \
    m.impl("all_gather", TORCH_BOX(&allGather));                               \
    m.impl("all_gather.out", TORCH_BOX(&allGatherOut));                        \
    m.impl("reduce_scatter", TORCH_BOX(&reduceScatter));                       \
    m.impl("reduce_scatter.out", TORCH_BOX(&reduceScatterOut));                \
    m.impl("all_to_all", TORCH_BOX(&allToAll));                                \
    m.impl("all_to_all.out", TORCH_BOX(&allToAllOut));                         \
    m.impl("broadcast", TORCH_BOX(&broadcast));                                \
    m.impl("broadcast.out", TORCH_BOX(&broadcastOut));                         \
    m.impl("_nothing", TORCH_BOX(&nothing));                                   \
  }

COMMSIR_IMPLEMENT(CPU)
COMMSIR_IMPLEMENT(CUDA)
#undef COMMSIR_IMPLEMENT
