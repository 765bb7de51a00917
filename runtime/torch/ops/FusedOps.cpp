//===- FusedOps.cpp - torch.ops.commsir: with arithmetic ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/FusedCall.h"
#include "runtime/torch/ops/Interrupt.h"
#include "runtime/torch/ops/OpCall.h"
#include "runtime/torch/ops/Tensors.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <optional>

using namespace commsir::torch_ops;
using commsir::PreparedTensor;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

static std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t first = 0; first < text.size();) {
    size_t end = std::min(text.find(',', first), text.size());
    parts.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

/// The rows of `tensor`: all dimensions but the last.
static int64_t rowsOf(const Tensor &tensor) {
  int64_t columns = tensor.dim() ? tensor.size(tensor.dim() - 1) : 1;
  return columns ? tensor.numel() / columns : 0;
}

static int64_t columnsOf(const Tensor &tensor) {
  return tensor.dim() ? tensor.size(tensor.dim() - 1) : 1;
}

commsir_operand commsir::torch_ops::operand(const PreparedTensor &tensor) {
  commsir_operand made = {};
  made.data = tensor.data;
  made.elements = tensor.elements;
  made.type = typeName(ScalarType(tensor.type));
  // One dimension: a row that all rows share.
  made.per_row = tensor.dimensions > 1;
  made.columns = tensor.columns;
  return made;
}

static commsir_operand operand(const Tensor &tensor) {
  return operand(PreparedTensor{
      tensor.data_ptr(), tensor.numel(), columnsOf(tensor), tensor.dim(),
      int64_t(tensor.element_size()), int8_t(tensor.scalar_type())});
}

/// A kernel reads an argument's row before it writes the same row of an output
/// in its place, and knows no more.
static void requireApart(const Tensor &out, const Tensor &arg) {
  Extent written(out), read(arg);
  auto rowBytes = [](const Tensor &tensor) {
    return columnsOf(tensor) * int64_t(tensor.element_size());
  };
  bool same = written.begin == read.begin && rowBytes(out) == rowBytes(arg) &&
              arg.dim() > 1;
  if (written.meets(read) && !same)
    throw std::runtime_error("commsir: an output overlaps an argument whose "
                             "rows are not its own; give it its own memory");
}

static bool reduces(const std::string &collective) {
#define COMMSIR_COLLECTIVE(name, movement, direction, reduces, rowsVary)       \
  if (collective == #name)                                                     \
    return reduces;
#include "dialect/Collectives.def"
#undef COMMSIR_COLLECTIVE
  return false;
}

/// What is to be sent where that is not the input itself: `text`, a region that
/// reads the input and the first `sources` arguments.
struct ProduceRegion {
  std::string text;
  int64_t sources = 0;
};

std::string commsir::torch_ops::reductionOfSent(const std::string &op,
                                                ScalarType type,
                                                const std::string &reduce,
                                                bool isProduced) {
  if (!reduces(op))
    return "";
  return isProduced ? reduce : reductionFor(type, reduce);
}

void commsir::torch_ops::setArguments(commsir_fused &call, const char *produce,
                                      size_t sources,
                                      const commsir_operand *arguments,
                                      size_t count) {
  if (sources > count)
    throw std::runtime_error(
        "commsir: produce reads " + std::to_string(sources) +
        " arguments, but the call has " + std::to_string(count));
  call.produce = produce;
  call.sources = arguments;
  call.source_count = sources;
  call.arguments = arguments + call.source_count;
  call.argument_count = count - call.source_count;
}

static commsir_status
fuse(const std::string &op, const Tensor &input,
     const std::vector<Tensor> &args, const std::string &reduce,
     const std::string &consume, bool symmetric, const std::string &group,
     const std::vector<Tensor> &outs, const ProduceRegion &produce = {}) {
  LockedGroup &used = groupOf(input, group);
  Tensor in = calculable(input);
  std::vector<Tensor> kept;
  std::vector<commsir_operand> arguments, outputs;
  for (const Tensor &arg : args) {
    requireDevice("an argument", arg, input);
    arguments.push_back(operand(kept.emplace_back(calculable(arg))));
  }
  for (const Tensor &out : outs) {
    // Types and sizes are the library's to compare with the arithmetic's.
    requireDevice("an output", out, input);
    requireContiguous(out);
    for (const Tensor &arg : kept)
      requireApart(out, arg);
    for (const Tensor &other : outs)
      if (&other != &out && Extent(out).meets(Extent(other)))
        throw std::runtime_error("commsir: two outputs share memory, and only "
                                 "one of them could be kept; give each output "
                                 "memory of its own");
    // Rows of the result are written while others of the input are read.
    bool isInPlace = op == "all_reduce" && columnsOf(out) == columnsOf(in) &&
                     out.element_size() == in.element_size() &&
                     out.data_ptr() == in.data_ptr();
    if (!isInPlace && Extent(out).meets(Extent(in)))
      in = torch::stable::clone(in);
    outputs.push_back(operand(out));
    outputs.back().per_row = 1;
  }
  std::string reduction =
      reductionOfSent(op, in.scalar_type(), reduce, !produce.text.empty());
  // Of all ranks, so nobody waits.
  if (rowsOf(in) == 0)
    return COMMSIR_OK;
  commsir_fused call = {};
  call.size = sizeof call;
  call.op = op.c_str();
  call.reduction = reduction.c_str();
  call.type = typeName(in.scalar_type());
  call.rows = rowsOf(in);
  call.columns = columnsOf(in);
  call.input = in.data_ptr();
  setArguments(call, produce.text.c_str(), size_t(produce.sources),
               arguments.data(), arguments.size());
  call.outputs = outputs.data();
  call.output_count = outputs.size();
  call.consume = consume.c_str();
  std::lock_guard<std::mutex> lock(used.mutex);
  if (symmetric && in.data_ptr() == input.data_ptr())
    Groups::get().adopt(used, in.data_ptr(), in.numel() * in.element_size());
  Interruptible scope;
  return commsir_group_fused(used.group, &call, streamOf(in));
}

static void fusedOut(std::string op, Tensor input, std::vector<Tensor> args,
                     std::string reduce, std::string consume, bool symmetric,
                     std::string group, std::vector<Tensor> outs) {
  check(fuse(op, input, args, reduce, consume, symmetric, group, outs));
}

/// Rows that an op's results have on each rank, for `rows` rows of input.
static int64_t resultRows(const std::string &op, int64_t rows, int64_t ranks) {
  if (op == "all_gather")
    return rows * ranks;
  if (op != "reduce_scatter")
    return rows;
  requireShares(rows, ranks);
  return rows / ranks;
}

static std::vector<Tensor> emptyOutputs(const std::string &op,
                                        const Tensor &input,
                                        const std::string &outTypes,
                                        const std::vector<int64_t> &outColumns,
                                        const std::string &group) {
  std::vector<std::string> types = split(outTypes);
  if (types.size() != outColumns.size())
    throw std::runtime_error("commsir: fused_collective has " +
                             std::to_string(types.size()) + " types and " +
                             std::to_string(outColumns.size()) +
                             " widths of outputs");
  int64_t ranks = groupOf(input, group).ranks;
  std::vector<Tensor> outs;
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
    if (shape.size() < 2)
      shape.insert(shape.begin(), 1);
    shape.front() = resultRows(op, shape.front(), ranks);
    if (outColumns[i] < 0)
      throw std::runtime_error(
          "commsir: output " + std::to_string(i) + " of fused_collective has " +
          std::to_string(outColumns[i]) + " columns; give 0 or more");
    shape.back() = outColumns[i];
    outs.push_back(emptyOf(input, shape, typeNamed(types[i])));
  }
  return outs;
}

//===----------------------------------------------------------------------===//
// Where each rank has compiled for itself
//===----------------------------------------------------------------------===//
//
// Ranks that compile a program may come to different arithmetic behind one and
// the same collective: one multiplies by its number, one adds a bias, one has
// a graph without a kernel. What they have in common is the collective of the
// process group. So a kernel at a place ("site") of a compiled graph runs once
// all ranks have said that they want this very kernel there; until then, and
// where they do not, commsir::_apart runs the collective and, on this rank
// alone, the arithmetic (frontend/commsir/torch/agreement.py).
//
// On the CPU every step of a group is compared among its ranks. There a rank
// may leave what was agreed on at any call: once anything is agreed on, each
// collective of a compiled graph is a step of the group, if only one that says
// that this rank runs it apart.

/// Tells the other ranks, which may be about to run a kernel instead.
/// `operation`: that of another library which is the collective, if any. A rank
/// that does not know it as one tells nothing, and none has agreed then.
static void announceFallback(LockedGroup &used, std::string_view operation) {
  if (used.device >= 0 || !used.hasAgreed(operation))
    return;
  int32_t given = 0, taken = 0;
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.type = "i32";
  call.type_name = "a collective without arithmetic";
  call.input = &given;
  call.output = &taken;
  call.input_elements = call.output_elements = 1;
  std::lock_guard<std::mutex> lock(used.mutex);
  Interruptible scope;
  commsir_status status = commsir_group_collective(used.group, &call, nullptr);
  // Others had a kernel in mind, and have heard.
  if (status != COMMSIR_DISAGREE)
    check(status);
}

/// Before a collective of a compiled graph that is left as it is.
static void unfused(Tensor input, std::string group, std::string operation) {
  if (LockedGroup *used = Groups::get().findMade(group, deviceNumber(input)))
    announceFallback(*used, operation);
}

static std::vector<Tensor>
runApart(const std::string &op, const Tensor &input,
         const std::vector<Tensor> &args, const std::string &reduce,
         const std::string &consume, const std::string &outTypes,
         const std::vector<int64_t> &outColumns, bool symmetric,
         const std::string &group, const std::string &site,
         const std::optional<std::vector<Tensor>> &parts,
         const ProduceRegion &produce) {
  using torch::stable::detail::from;
  std::array<StableIValue, 13> stack = {from(op),
                                        from(input),
                                        from(args),
                                        from(reduce),
                                        from(consume),
                                        from(outTypes),
                                        from(outColumns),
                                        from(symmetric),
                                        from(group),
                                        from(site),
                                        from(parts),
                                        from(produce.text),
                                        from(produce.sources)};
  if (torch_call_dispatcher("commsir::_apart", "", stack.data(),
                            TORCH_ABI_VERSION))
    throw std::runtime_error(Groups::get().error());
  return torch::stable::detail::to<std::vector<Tensor>>(stack[0]);
}

/// `site`: a place in a compiled graph; empty: all ranks make the same call.
/// `parts`: the inputs of several collectives that this one replaces; `input`
/// is their sum. Apart, each part has the process group's own collective.
/// `produce` makes what travels, of the input and the first `sources` of
/// `args`.
static std::vector<Tensor>
fused(std::string op, Tensor input, std::vector<Tensor> args,
      std::string reduce, std::string consume, std::string outTypes,
      std::vector<int64_t> outColumns, bool symmetric, std::string group,
      std::string site, std::optional<std::vector<Tensor>> parts,
      std::string produce, int64_t sources) {
  auto run = [&](std::vector<Tensor> &outs) {
    outs = emptyOutputs(op, input, outTypes, outColumns, group);
    return fuse(op, input, args, reduce, consume, symmetric, group, outs,
                {produce, sources});
  };
  std::vector<Tensor> outs;
  if (site.empty()) {
    check(run(outs));
    return outs;
  }
  LockedGroup *used = Groups::get().findMade(group, deviceNumber(input));
  // Without elements a kernel is no step.
  if (used && input.numel() && used->isAgreed(site)) {
    commsir_status status = run(outs);
    used->note(site, status != COMMSIR_DISAGREE);
    if (isDefect(status)) {
      used->revoke(site);
      setDefect(commsir_error_message());
    } else if (status != COMMSIR_DISAGREE) {
      check(status);
      return outs;
    }
  } else if (used) {
    announceFallback(*used, operationOf(site));
  }
  return runApart(op, input, args, reduce, consume, outTypes, outColumns,
                  symmetric, group, site, parts, {produce, sources});
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

STABLE_TORCH_LIBRARY_FRAGMENT(commsir, m) {
  m.def("fused_collective(str op, Tensor input, Tensor[] args, str reduce_op, "
        "str consume, str out_types, int[] out_columns, bool symmetric, str "
        "group_name, str site='', Tensor[]? parts=None, str produce='', int "
        "sources=0) -> Tensor[]");
  m.def("fused_collective.out(str op, Tensor input, Tensor[] args, str "
        "reduce_op, str consume, bool symmetric, str group_name, *, "
        "Tensor(a!)[] outs) -> ()");
  m.def("_unfused(Tensor input, str group_name, str operation='') -> ()");
  m.def("_apart(str op, Tensor input, Tensor[] args, str reduce_op, str "
        "consume, str out_types, int[] out_columns, bool symmetric, str "
        "group_name, str site, Tensor[]? parts, str produce, int sources) -> "
        "Tensor[]");
}

#define COMMSIR_IMPLEMENT(KEY)                                                 \
  STABLE_TORCH_LIBRARY_IMPL(commsir, KEY, m) {                                 \
    m.impl("fused_collective", TORCH_BOX(&fused));                             \
    m.impl("fused_collective.out", TORCH_BOX(&fusedOut));                      \
    m.impl("_unfused", TORCH_BOX(&unfused));                                   \
  }

COMMSIR_IMPLEMENT(CPU)
COMMSIR_IMPLEMENT(CUDA)
#undef COMMSIR_IMPLEMENT
