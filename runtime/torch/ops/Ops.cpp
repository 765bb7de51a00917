//===- Ops.cpp - torch.ops.commsir ----------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives as torch ops, plain and with arithmetic, over LibTorch's stable
// ABI: one binary for torch 2.11 and newer. An op runs on the current stream
// and is done, for that stream, when it returns: there is nothing to wait for.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/PreparedCall.h"
#include "runtime/torch/ops/Groups.h"
#include "runtime/torch/ops/Interrupt.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

using namespace commsir::torch_ops;
using commsir::PreparedOutcome;
using commsir::PreparedTensor;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// MLIR's name of a type.
static const char *typeName(ScalarType type) {
  switch (type) {
  case ScalarType::Double:
    return "f64";
  case ScalarType::Float:
    return "f32";
  case ScalarType::Half:
    return "f16";
  case ScalarType::BFloat16:
    return "bf16";
  case ScalarType::Float8_e4m3fn:
    return "f8E4M3FN";
  case ScalarType::Float8_e5m2:
    return "f8E5M2";
  case ScalarType::Char:
  case ScalarType::Byte:
  case ScalarType::Bool:
    return "i8";
  case ScalarType::Short:
  case ScalarType::UInt16:
    return "i16";
  case ScalarType::Int:
  case ScalarType::UInt32:
    return "i32";
  case ScalarType::Long:
  case ScalarType::UInt64:
    return "i64";
  default:
    throw std::runtime_error(
        std::string("commsir has no element type ") +
        torch::headeronly::toString(type) +
        "; it has float64, float32, float16, bfloat16, float8_e4m3fn, "
        "float8_e5m2 and integers, and collectives without arithmetic "
        "complex numbers as well; float8_e4m3fnuz, float8_e5m2fnuz, "
        "float8_e8m0fnu and float4_e2m1fn_x2 can be moved but not reduced");
  }
}

/// Bytes that no kernel calculates with.
static bool isOpaque(ScalarType type) {
  return type == ScalarType::Float8_e4m3fnuz ||
         type == ScalarType::Float8_e5m2fnuz ||
         type == ScalarType::Float8_e8m0fnu ||
         type == ScalarType::Float4_e2m1fn_x2;
}

/// Returns the caller's name of an element type if it is moved or reduced as
/// another; null otherwise.
static const char *givenName(ScalarType type) {
  switch (type) {
  case ScalarType::Bool:
    return "i1";
  case ScalarType::Byte:
    return "ui8";
  case ScalarType::UInt16:
    return "ui16";
  case ScalarType::UInt32:
    return "ui32";
  case ScalarType::UInt64:
    return "ui64";
  case ScalarType::ComplexHalf:
    return "complex<f16>";
  case ScalarType::ComplexFloat:
    return "complex<f32>";
  case ScalarType::ComplexDouble:
    return "complex<f64>";
  default:
    return isOpaque(type) ? torch::headeronly::toString(type) : nullptr;
  }
}

/// Of complex numbers, that of their halves; of bytes that are moved alone,
/// bytes.
static ScalarType partOf(ScalarType type, bool isMoved = false) {
  if (isMoved && isOpaque(type))
    return ScalarType::Char;
  switch (type) {
  case ScalarType::ComplexHalf:
    return ScalarType::Half;
  case ScalarType::ComplexFloat:
    return ScalarType::Float;
  case ScalarType::ComplexDouble:
    return ScalarType::Double;
  default:
    return type;
  }
}

static bool isUnsigned(ScalarType type) {
  return type == ScalarType::Byte || type == ScalarType::UInt16 ||
         type == ScalarType::UInt32 || type == ScalarType::UInt64;
}

/// Returns the reduction of elements as they are moved; "" for none.
static std::string reductionFor(ScalarType type, const std::string &reduce) {
  auto refuse = [&](const char *instead) {
    throw std::runtime_error("commsir: no \"" + reduce + "\" of " +
                             torch::headeronly::toString(type) + "; " +
                             instead);
  };
  // Kernels know integers with a sign alone.
  if (isUnsigned(type) &&
      (reduce == "min" || reduce == "max" || reduce == "avg"))
    refuse("convert it to a signed type that can represent all its values");
  if (partOf(type) != type && !reduce.empty() && reduce != "sum" &&
      reduce != "avg")
    refuse("complex numbers have sum and avg");
  if (type != ScalarType::Bool)
    return reduce;
  // A byte that is a boolean is 0 or 1.
  if (reduce == "avg")
    refuse("convert it to a number");
  return reduce == "sum" ? "or" : reduce == "prod" ? "and" : reduce;
}

static ScalarType typeNamed(std::string_view name) {
  for (ScalarType type :
       {ScalarType::Double, ScalarType::Float, ScalarType::Half,
        ScalarType::BFloat16, ScalarType::Float8_e4m3fn,
        ScalarType::Float8_e5m2, ScalarType::Char, ScalarType::Short,
        ScalarType::Int, ScalarType::Long})
    if (typeName(type) == name)
      return type;
  throw std::runtime_error("commsir has no element type '" + std::string(name) +
                           "'");
}

/// The bytes of storage up to the last element of `tensor`.
static int64_t bytesUsed(const Tensor &tensor) {
  int64_t last = tensor.numel() - 1;
  if (last < 0)
    return 0;
  if (!tensor.is_contiguous()) {
    last = 0;
    for (int64_t i = 0; i < tensor.dim(); ++i)
      last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return (tensor.storage_offset() + last + 1) * int64_t(tensor.element_size());
}

/// A tensor may need more bytes than its storage has, after
/// `untyped_storage().resize_()`.
static void requireStorage(const Tensor &tensor) {
  int64_t needed = bytesUsed(tensor), given = 0;
  STD_TORCH_CHECK(aoti_torch_get_storage_size(tensor.get(), &given) == 0,
                  "commsir: torch does not report the size of a storage");
  if (needed > given)
    throw std::runtime_error(
        "commsir: a tensor needs " + std::to_string(needed) +
        " bytes of its storage, which has " + std::to_string(given) +
        ": untyped_storage().resize_() made it too small; resize it to that "
        "size, or pass another tensor");
}

static Tensor dense(const Tensor &tensor) {
  requireStorage(tensor);
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

static Tensor logicalNot(const Tensor &tensor) {
  std::array<StableIValue, 1> stack{torch::stable::detail::from(tensor)};
  STD_TORCH_CHECK(torch_call_dispatcher("aten::logical_not", "", stack.data(),
                                        TORCH_ABI_VERSION) == 0,
                  "commsir: torch does not calculate with booleans");
  return torch::stable::detail::to<Tensor>(stack[0]);
}

/// A tensor that a kernel calculates with. Booleans may be any byte, as in a
/// view of uint8: all but 0 are true, and a kernel gets 0 and 1.
static Tensor calculable(const Tensor &tensor) {
  Tensor used = dense(tensor);
  if (used.scalar_type() != ScalarType::Bool)
    return used;
  std::array<StableIValue, 2> stack{
      torch::stable::detail::from(used),
      torch::stable::detail::from(ScalarType::Byte)};
  STD_TORCH_CHECK(torch_call_dispatcher("aten::view", "dtype", stack.data(),
                                        TORCH_ABI_VERSION) == 0,
                  "commsir: torch does not show booleans as bytes");
  return logicalNot(logicalNot(torch::stable::detail::to<Tensor>(stack[0])));
}

/// torch's kind of a device, and which one of it; null: it has no number.
struct Device {
  int32_t type = 0, index = 0;
  bool operator==(const Device &) const = default;
};

static Device deviceOf(const Tensor &tensor) {
  Device device;
  STD_TORCH_CHECK(
      aoti_torch_get_device_type(tensor.get(), &device.type) == 0 &&
          (device.type == aoti_torch_device_type_cpu() ||
           aoti_torch_get_device_index(tensor.get(), &device.index) == 0),
      "commsir: torch does not report the device of a tensor");
  return device;
}

static std::string nameOf(const Device &device) {
  if (device.type == aoti_torch_device_type_cpu())
    return "cpu";
  if (device.type == aoti_torch_device_type_cuda())
    return "cuda:" + std::to_string(device.index);
  if (device.type == aoti_torch_device_type_meta())
    return "meta";
  return "a device of type " + std::to_string(device.type);
}

static std::string nameOf(torch::headeronly::IntHeaderOnlyArrayRef shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

static void requireTensor(const char *what, const Tensor &tensor) {
  if (!tensor.defined())
    throw std::runtime_error(std::string("commsir: ") + what +
                             " is None, not a tensor");
}

static void requireDevice(const char *what, const Tensor &tensor,
                          const Tensor &input) {
  requireTensor(what, tensor);
  Device own = deviceOf(tensor), wanted = deviceOf(input);
  if (own != wanted)
    throw std::runtime_error(std::string("commsir: ") + what + " is on " +
                             nameOf(own) + ", but the input on " +
                             nameOf(wanted) + "; move them to one device");
}

static void requireContiguous(const Tensor &out) {
  if (!out.is_contiguous())
    throw std::runtime_error(
        "commsir: an output must be contiguous: pass a contiguous tensor, and "
        "copy it from there");
  requireStorage(out);
}

static void requireShares(int64_t rows, int64_t ranks) {
  if (rows % ranks)
    throw std::runtime_error("commsir: " + std::to_string(rows) +
                             " rows cannot be shared out to " +
                             std::to_string(ranks) + " ranks");
}

/// The shape of `input` with `numerator / denominator` times the rows.
static std::vector<int64_t> shapeOfRows(const Tensor &input, int64_t numerator,
                                        int64_t denominator) {
  std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
  if (shape.empty())
    shape.push_back(1);
  requireShares(shape[0], denominator);
  shape[0] = shape[0] / denominator * numerator;
  return shape;
}

/// The same as a question, without memory: each call with an output asks it.
static bool hasRows(const Tensor &out, const Tensor &input, int64_t numerator,
                    int64_t denominator) {
  auto got = out.sizes(), given = input.sizes();
  if (given.empty())
    return got.empty() ? numerator == denominator
                       : got.size() == 1 && got[0] * denominator == numerator;
  if (got.size() != given.size() ||
      got[0] * denominator != given[0] * numerator)
    return false;
  return std::equal(got.begin() + 1, got.end(), given.begin() + 1);
}

/// What a caller gives for the result of a plain collective, of the shape of
/// `input` with `numerator / denominator` times the rows. Elements are counted
/// by the library, which takes them to be the input's, where that lies.
static void requireResult(const Tensor &out, const Tensor &input,
                          int64_t numerator, int64_t denominator) {
  requireDevice("the output", out, input);
  if (out.scalar_type() != input.scalar_type())
    throw std::runtime_error(std::string("commsir: the output is ") +
                             torch::headeronly::toString(out.scalar_type()) +
                             ", but the input " +
                             torch::headeronly::toString(input.scalar_type()) +
                             "; give tensors of one type");
  if (!hasRows(out, input, numerator, denominator))
    throw std::runtime_error(
        "commsir: the output has the shape " + nameOf(out.sizes()) +
        ", but the result of an input of shape " + nameOf(input.sizes()) +
        " has " +
        nameOf(numerator == denominator
                   ? std::vector<int64_t>(input.sizes().begin(),
                                          input.sizes().end())
                   : shapeOfRows(input, numerator, denominator)));
  requireContiguous(out);
}

/// -1: the CPU.
static int32_t deviceNumber(const Tensor &tensor) {
  requireTensor("the input", tensor);
  bool cpu = tensor.is_cpu();
  if (!cpu && !tensor.is_cuda())
    throw std::runtime_error("commsir: tensors are on the CPU or on a GPU");
  return cpu ? -1 : tensor.get_device_index();
}

static LockedGroup &groupOf(const Tensor &tensor, const std::string &name) {
  return Groups::get().find(name, deviceNumber(tensor));
}

/// Looks up the function in the loaded torch. It cannot be linked, because a
/// torch without CUDA lacks it.
static auto findCurrentStream() {
  using Function = AOTITorchError (*)(int32_t, void **);
  void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(
      library ? library : RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
}

/// The current stream of a GPU.
static void *streamOn(int32_t device) {
  static auto current = findCurrentStream();
  void *stream = nullptr;
  if (!current || current(device, &stream) != 0)
    throw std::runtime_error("commsir: torch does not tell the current stream");
  return stream;
}

/// Returns the current stream of the tensor's GPU; null on the CPU.
static void *streamOf(const Tensor &tensor) {
  return tensor.is_cpu() ? nullptr : streamOn(tensor.get_device_index());
}

/// Status of this thread's last failed call, for commsir_torch_last_status.
static thread_local commsir_status lastStatus = COMMSIR_OK;
/// Why this thread's last call at a site had no kernel; taken by
/// commsir_torch_take_defect.
static thread_local std::string lastDefect;

static void check(commsir_status status) {
  lastStatus = status;
  if (status != COMMSIR_OK)
    throw std::runtime_error(commsir_error_message());
}

/// Whether no kernel can be made of a call's arithmetic. All ranks have been
/// told, and nothing has run.
static bool isDefect(commsir_status status) {
  return status == COMMSIR_COMPILE || status == COMMSIR_CHECKER;
}

//===----------------------------------------------------------------------===//
// Plain collectives
//===----------------------------------------------------------------------===//

/// The address range of a contiguous tensor.
struct Extent {
  const char *begin, *end;
  explicit Extent(const Tensor &tensor)
      : begin(static_cast<const char *>(tensor.data_ptr())),
        end(begin + tensor.numel() * tensor.element_size()) {}
  int64_t size() const { return end - begin; }
  bool meets(const Extent &other) const {
    return begin < other.end && other.begin < end;
  }
};

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

/// On the device of `like`. torch::stable::new_empty costs some 10 µs, on its
/// way through the dispatcher; this is about one.
static Tensor emptyOf(const Tensor &like, const std::vector<int64_t> &shape,
                      std::optional<ScalarType> type = {}) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  int32_t device = 0, dtype = 0;
  STD_TORCH_CHECK(aoti_torch_get_device_type(like.get(), &device) == 0 &&
                      aoti_torch_get_dtype(like.get(), &dtype) == 0,
                  "commsir: torch does not report the device of a tensor");
  if (type)
    dtype =
        torch::stable::detail::to<int32_t>(torch::stable::detail::from(*type));
  AtenTensorHandle made = nullptr;
  STD_TORCH_CHECK(aoti_torch_empty_strided(shape.size(), shape.data(),
                                           strides.data(), dtype, device,
                                           like.get_device_index(), &made) == 0,
                  "commsir: torch has no memory for a result");
  return Tensor(made);
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

//===----------------------------------------------------------------------===//
// Collectives with arithmetic
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

static commsir_operand operand(const PreparedTensor &tensor) {
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

/// Returns the reduction of what a call sends; "" if it reduces nothing. With
/// `isProduced`, a region makes numbers of an input of `type`, which may be a
/// mask or unsigned.
static std::string reductionOfSent(const std::string &op, ScalarType type,
                                   const std::string &reduce, bool isProduced) {
  if (!reduces(op))
    return "";
  return isProduced ? reduce : reductionFor(type, reduce);
}

/// Shares out a call's operands between its two regions.
static void setArguments(commsir_fused &call, const char *produce,
                         size_t sources, const commsir_operand *arguments,
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
      lastDefect = commsir_error_message();
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
// Prepared calls
//===----------------------------------------------------------------------===//

/// The group, where the call can be launched as it is.
static LockedGroup *groupOf(const commsir::PreparedTexts &texts,
                            int32_t device) {
  LockedGroup *used = Groups::get().findMade(texts.group, device);
  return used && (!*texts.site || used->isAgreed(texts.site)) ? used : nullptr;
}

static commsir_status launch(LockedGroup &used,
                             const commsir::PreparedTexts &texts,
                             const commsir::PreparedTensors &tensors) {
  std::array<commsir_operand, 16> kept;
  std::vector<commsir_operand> more;
  commsir_operand *operands = kept.data();
  if (tensors.argumentCount + tensors.outputCount > kept.size()) {
    more.resize(tensors.argumentCount + tensors.outputCount);
    operands = more.data();
  }
  commsir_operand *outputs = operands + tensors.argumentCount;
  for (size_t i = 0; i < tensors.argumentCount; ++i)
    operands[i] = operand(tensors.arguments[i]);
  for (size_t i = 0; i < tensors.outputCount; ++i) {
    outputs[i] = operand(tensors.outputs[i]);
    outputs[i].per_row = 1;
  }
  const PreparedTensor &input = tensors.input;
  std::string reduction =
      reductionOfSent(texts.op, ScalarType(input.type), texts.reduction,
                      texts.produce && *texts.produce);
  commsir_fused call = {};
  call.size = sizeof call;
  call.op = texts.op;
  call.reduction = reduction.c_str();
  call.type = typeName(ScalarType(input.type));
  call.rows = input.elements / input.columns;
  call.columns = input.columns;
  call.input = input.data;
  setArguments(call, texts.produce, texts.sources, operands,
               tensors.argumentCount);
  call.outputs = outputs;
  call.output_count = tensors.outputCount;
  call.consume = texts.consume;
  std::lock_guard<std::mutex> lock(used.mutex);
  if (texts.symmetric)
    Groups::get().adopt(used, input.data, input.elements * input.width);
  Interruptible scope;
  return commsir_group_fused(used.group, &call, streamOn(used.device));
}

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): names of a C interface.
/// Status of this thread's last call that raised an error.
COMMSIR_API int commsir_torch_last_status() { return lastStatus; }

/// Why the call that runs apart has no kernel although ranks had agreed on one;
/// empty: it has. Valid until the thread's next such call.
COMMSIR_API const char *commsir_torch_take_defect() {
  static thread_local std::string taken;
  taken = std::exchange(lastDefect, {});
  return taken.c_str();
}

/// A commsir::PreparedRanks.
COMMSIR_API int64_t commsir_torch_prepared_ranks(
    const commsir::PreparedTexts *texts, int32_t device) {
  LockedGroup *used = groupOf(*texts, device);
  return used ? used->ranks : 0;
}

/// A commsir::PreparedRun.
COMMSIR_API PreparedOutcome commsir_torch_run_prepared(
    const commsir::PreparedTexts *texts, int32_t device,
    const commsir::PreparedTensors *tensors, const char **message) {
  static thread_local std::string text;
  try {
    LockedGroup *used = groupOf(*texts, device);
    if (!used)
      return PreparedOutcome::CallOp;
    commsir_status status = launch(*used, *texts, *tensors);
    if (*texts->site) {
      used->note(texts->site, status != COMMSIR_DISAGREE);
      // The op makes the call once more, and sees what to do instead.
      if (status == COMMSIR_DISAGREE || isDefect(status))
        return PreparedOutcome::CallOp;
    }
    check(status);
    return PreparedOutcome::Done;
  } catch (const std::exception &error) {
    text = error.what();
    *message = text.c_str();
    return PreparedOutcome::Failed;
  }
}
// NOLINTEND(readability-identifier-naming)
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

/// Measures the cost of an op itself.
static Tensor nothing(Tensor input, std::string, std::string) {
  return empty(input);
}

STABLE_TORCH_LIBRARY(commsir, m) {
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
    m.impl("fused_collective", TORCH_BOX(&fused));                             \
    m.impl("fused_collective.out", TORCH_BOX(&fusedOut));                      \
    m.impl("_unfused", TORCH_BOX(&unfused));                                   \
    m.impl("_nothing", TORCH_BOX(&nothing));                                   \
  }

COMMSIR_IMPLEMENT(CPU)
COMMSIR_IMPLEMENT(CUDA)
