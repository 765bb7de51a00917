//===- Call.cpp - One call of a process group -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Call.h"

#include "runtime/torch/c10d/Capture.h"
#include "runtime/torch/c10d/Interrupt.h"
#include "runtime/torch/c10d/Overlap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <thread>

using namespace commsir::torch_c10d;
using c10d::ReduceOp;
using std::chrono::milliseconds;

/// Extra time a waiter allows beyond the call's own timeout.
static constexpr milliseconds kGrace{5000};

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Whether memory is what the tensor holds: that of a view which conjugates or
/// negates lazily, such as the imaginary part of a conjugate, is not.
static bool isPlainView(const at::Tensor &tensor) {
  return tensor.is_contiguous() && !tensor.is_neg() && !tensor.is_conj();
}

/// The bytes of storage up to the last element of `tensor`.
static size_t bytesUsed(const at::Tensor &tensor) {
  size_t width = tensor.element_size();
  size_t before = size_t(tensor.storage_offset()) * width;
  return tensor.is_contiguous()
             ? before + tensor.nbytes()
             : at::detail::computeStorageNbytes(tensor.sizes(),
                                                tensor.strides(), width,
                                                tensor.storage_offset());
}

bool commsir::torch_c10d::isInStorage(const at::Tensor &tensor) {
  return tensor.numel() == 0 || bytesUsed(tensor) <= tensor.storage().nbytes();
}

/// Booleans may be any byte, as in a view of uint8: all but 0 are true.
static void copyTruth(at::Tensor to, const at::Tensor &from) {
  at::ne_out(to, from.view(at::kByte), at::Scalar(0));
}

/// A contiguous tensor like that one, without its contents.
static at::Tensor makePlaceholder(const at::Tensor &tensor) {
  return at::empty(tensor.sizes(), tensor.options());
}

at::Tensor Call::dense(const at::Tensor &tensor, bool in, bool out) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "commsir: ", name,
              " takes dense tensors; call .to_dense() first");
  TORCH_CHECK(isInStorage(tensor), "commsir: ", name, ": a tensor needs ",
              bytesUsed(tensor), " bytes of its storage, which has ",
              tensor.storage().nbytes(),
              ": untyped_storage().resize_() made it too small; resize it to ",
              "that size, or pass another tensor");
  bool isTruth = in && reduces && tensor.scalar_type() == at::kBool;
  if (isPlainView(tensor) && !isTruth)
    return tensor;
  if (out && !refusesLate)
    checkApart(name, {tensor});
  at::Tensor stand = makePlaceholder(tensor);
  if (isTruth)
    before.push_back([=] { copyTruth(stand, tensor); });
  else if (in)
    before.push_back([=]() mutable { stand.copy_(tensor); });
  if (out)
    after.push_back([=, name = name] {
      checkApart(name, {tensor});
      tensor.copy_(stand);
    });
  kept.push_back(tensor);
  return stand;
}

bool commsir::torch_c10d::isPartOf(const at::Tensor &part,
                                   const at::Tensor &whole, int64_t number) {
  auto *begin = static_cast<const char *>(whole.const_data_ptr());
  return isPlainView(part) && isPlainView(whole) &&
         part.const_data_ptr() == begin + number * int64_t(part.nbytes());
}

at::Tensor Call::input(const at::Tensor &t,
                       const std::vector<at::Tensor> &written, bool isOwn) {
  at::Tensor used = dense(t, true, false);
  bool isShared =
      !isOwn && std::any_of(written.begin(), written.end(),
                            [&](auto &one) { return doOverlap(one, used); });
  if (isShared) {
    at::Tensor stand = makePlaceholder(used);
    before.push_back([=]() mutable { stand.copy_(used); });
    kept.push_back(used);
    used = stand;
  }
  return inputs.emplace_back(used);
}

std::vector<at::Tensor> Call::outputList(const std::vector<at::Tensor> &list) {
  checkApart(name, list);
  std::vector<at::Tensor> used;
  for (const at::Tensor &tensor : list)
    used.push_back(output(tensor));
  return used;
}

at::Tensor Call::scratch(int64_t elements, const at::TensorOptions &options) {
  return kept.emplace_back(at::empty({elements}, options));
}

/// The integers that move elements of so many bytes.
static const char *widthType(size_t bytes) {
  return bytes == 1 ? "i8" : bytes == 2 ? "i16" : bytes == 4 ? "i32" : "i64";
}

/// The element type that must be equal on all ranks, even if only bytes are
/// moved.
static const char *namedType(at::ScalarType type) {
  switch (type) {
  case at::kDouble:
    return "f64";
  case at::kFloat:
    return "f32";
  case at::kHalf:
    return "f16";
  case at::kBFloat16:
    return "bf16";
  case at::kFloat8_e4m3fn:
    return "f8E4M3FN";
  case at::kFloat8_e5m2:
    return "f8E5M2";
  case at::kFloat8_e4m3fnuz:
    return "f8E4M3FNUZ";
  case at::kFloat8_e5m2fnuz:
    return "f8E5M2FNUZ";
  case at::kBool:
    return "i1";
  case at::kByte:
    return "ui8";
  case at::kChar:
    return "i8";
  case at::kShort:
    return "i16";
  case at::kUInt16:
    return "ui16";
  case at::kInt:
    return "i32";
  case at::kUInt32:
    return "ui32";
  case at::kLong:
    return "i64";
  case at::kUInt64:
    return "ui64";
  case at::kComplexHalf:
    return "complex<f16>";
  case at::kComplexFloat:
    return "complex<f32>";
  // Counted in words of 8 bytes.
  case at::kComplexDouble:
    return "halves of complex<f64>";
  default:
    return c10::toString(type);
  }
}

static int64_t width(const at::Tensor &tensor) {
  return std::min<int64_t>(tensor.element_size(), 8);
}

static int64_t words(const at::Tensor &tensor) {
  return tensor.defined()
             ? static_cast<int64_t>(tensor.nbytes()) / width(tensor)
             : 0;
}

static void *address(const at::Tensor &tensor) {
  return tensor.defined() ? tensor.data_ptr() : nullptr;
}

void Call::copyStep(const char *op, const at::Tensor &in, const at::Tensor &out,
                    int64_t root) {
  const at::Tensor &known = in.defined() ? in : out;
  steps.push_back({op, "", widthType(width(known)), root, address(in),
                   words(in), address(out), words(out), nameOf(known)});
}

/// Words are those of copyStep; reductions take types that are one word.
std::shared_ptr<const Parts> Call::partsOf(const std::vector<at::Tensor> &in,
                                           const std::vector<at::Tensor> &out,
                                           int64_t each) {
  auto parts = std::make_shared<Parts>();
  const at::Tensor &known = in.empty() ? out.front() : in.front();
  parts->elements = each * known.element_size() / width(known);
  for (bool isInput : {true, false})
    for (const at::Tensor &tensor : isInput ? in : out) {
      at::Tensor used =
          kept.emplace_back(dense(tensor, /*in=*/isInput, /*out=*/!isInput));
      (isInput ? parts->inputs : parts->outputs)
          .push_back({used.data_ptr(), words(used)});
    }
  return parts;
}

void Call::copyPartsStep(const char *op, const std::vector<at::Tensor> &in,
                         const std::vector<at::Tensor> &out, int64_t each,
                         int64_t root) {
  const at::Tensor &known = in.empty() ? out.front() : in.front();
  std::shared_ptr<const Parts> parts = partsOf(in, out, each);
  auto count = [&](const std::vector<at::Tensor> &list) {
    return parts->elements * static_cast<int64_t>(list.size());
  };
  steps.push_back({op, "", widthType(width(known)), root, nullptr, count(in),
                   nullptr, count(out), nameOf(known), parts});
}

void Call::recordSizes(const std::vector<at::Tensor> &tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor &tensor : tensors)
    sizes.push_back(tensor.numel());
  Step &step = steps.back();
  step.named = names
                   .emplace_back(c10::str(step.named, " in tensors of ",
                                          at::IntArrayRef(sizes), " elements"))
                   .c_str();
}

const char *Call::nameOf(const at::Tensor &tensor) {
  auto isSame = [&](const at::Tensor &one) {
    return one.scalar_type() == tensor.scalar_type();
  };
  if (std::all_of(inputs.begin(), inputs.end(), isSame))
    return namedType(tensor.scalar_type());
  std::string text = "words of";
  const char *last = "";
  for (const at::Tensor &one : inputs) {
    const char *name = namedType(one.scalar_type());
    if (std::strcmp(name, last) != 0)
      text += (*last ? ", " : " ") + std::string(name);
    last = name;
  }
  return names.emplace_back(text).c_str();
}

bool PlainCall::isPlainLayout() const {
  return input.layout() == at::kStrided && output.layout() == at::kStrided &&
         input.scalar_type() == output.scalar_type() && isPlainView(input) &&
         isPlainView(output) && isInStorage(input) && isInStorage(output) &&
         input.device() == output.device() &&
         (isInPlace() || !doOverlap(input, output));
}

/// Whether the input is the output, or this rank's part of the one is the
/// other: that is read before it is written.
bool PlainCall::isInPlace() const {
  return input.nbytes() <= output.nbytes()
             ? isPartOf(input, output,
                        input.nbytes() < output.nbytes() ? rank : 0)
             : isPartOf(output, input, rank);
}

bool PlainCall::copies(const char *op, int64_t stepRoot) {
  int64_t bytes = width(input);
  if (!isPlainLayout())
    return false;
  step = {op,
          "",
          widthType(bytes),
          stepRoot,
          input.data_ptr(),
          words(input),
          output.data_ptr(),
          words(output),
          namedType(input.scalar_type())};
  return true;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static const char *reducedType(at::ScalarType type) {
  switch (type) {
  case at::kDouble:
  case at::kFloat:
  case at::kHalf:
  case at::kBFloat16:
  case at::kFloat8_e4m3fn:
  case at::kFloat8_e5m2:
    return namedType(type);
  case at::kByte:
  case at::kChar:
  case at::kBool:
    return "i8";
  case at::kShort:
  case at::kUInt16:
    return "i16";
  case at::kInt:
  case at::kUInt32:
    return "i32";
  case at::kLong:
  case at::kUInt64:
    return "i64";
  default:
    return "";
  }
}

static const char *reductionName(ReduceOp::RedOpType op, bool isBool) {
  switch (op) {
  case ReduceOp::SUM:
  case ReduceOp::PREMUL_SUM:
    // Any true makes the sum of booleans true.
    return isBool ? "or" : "sum";
  case ReduceOp::AVG:
    return "avg";
  case ReduceOp::PRODUCT:
    return isBool ? "and" : "prod";
  case ReduceOp::MIN:
    return isBool ? "and" : "min";
  case ReduceOp::MAX:
    return isBool ? "or" : "max";
  case ReduceOp::BAND:
    return "and";
  case ReduceOp::BOR:
    return "or";
  case ReduceOp::BXOR:
    return "xor";
  default:
    return "";
  }
}

static bool isUnsigned(at::ScalarType type) {
  return type == at::kByte || type == at::kUInt16 || type == at::kUInt32 ||
         type == at::kUInt64;
}

/// Unsigned integers in the order of signed ones: the top bit turned.
static void turnTopBit(const at::Tensor &to, const at::Tensor &from) {
  auto type = from.element_size() == 1   ? at::kChar
              : from.element_size() == 2 ? at::kShort
              : from.element_size() == 4 ? at::kInt
                                         : at::kLong;
  int64_t top = int64_t(1) << (8 * from.element_size() - 1);
  at::Tensor target = to.view(type);
  at::bitwise_xor_out(target, from.view(type),
                      at::Scalar(static_cast<int64_t>(-top)));
}

/// Integers, rounded to zero. torch divides no unsigned ones of more than 8
/// bits.
static void divide(const at::Tensor &sums, int64_t by) {
  auto type = sums.scalar_type();
  if (!isUnsigned(type) || type == at::kByte) {
    sums.div_(at::Scalar(by), "trunc");
  } else if (type != at::kUInt64) {
    sums.copy_(sums.to(at::kLong).div(at::Scalar(by), "trunc"));
  } else {
    // The half of a number is no negative one. What is left is below 2 * by.
    at::Tensor whole = sums.view(at::kLong),
               half = whole.bitwise_right_shift(at::Scalar(1))
                          .bitwise_and(at::Scalar(INT64_MAX)),
               most = half.div(at::Scalar(by), "trunc").mul(at::Scalar(2)),
               left = whole.sub(most.mul(at::Scalar(by)));
    whole.copy_(most.add(left.div(at::Scalar(by), "trunc")));
  }
}

static void multiply(const at::Tensor &to, const at::Tensor &from,
                     const ReduceOp &op) {
  auto *factor =
      dynamic_cast<c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
  TORCH_CHECK(factor, "commsir: PREMUL_SUM without a factor; make it with "
                      "torch.distributed._make_nccl_premul_sum");
  at::Tensor target = to;
  if (factor->tensor_factor.defined())
    at::mul_out(target, from,
                factor->tensor_factor.reshape({}).to(from.options()));
  else
    at::mul_out(target, from,
                at::scalar_tensor(factor->double_factor, from.options()));
}

/// Whether integers can be multiplied by it. A tensor is not read for that.
static bool isWhole(const c10d::NCCLPreMulSumSupplement &factor) {
  return factor.tensor_factor.defined()
             ? !factor.tensor_factor.is_floating_point()
             : std::trunc(factor.double_factor) == factor.double_factor;
}

static void checkReduction(const char *name, const ReduceOp &op,
                           const at::Tensor &tensor) {
  auto type = tensor.scalar_type();
  bool bitwise =
      op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
  TORCH_CHECK(!bitwise || c10::isIntegralType(type, /*includeBool=*/true),
              "commsir: Cannot use a bitwise ReduceOp with ", type, " in ",
              name, "; use an integer tensor");
  TORCH_CHECK(!c10::isComplexType(type) || c10d::isComplexViewAsRealAllowed(op),
              "commsir: ", name,
              " does not support this ReduceOp on complex "
              "tensors; use SUM, AVG or PREMUL_SUM");
  auto *factor =
      dynamic_cast<c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
  TORCH_CHECK(!factor || !factor->tensor_factor.defined() ||
                  !factor->tensor_factor.is_complex(),
              "commsir: ", name,
              ": PREMUL_SUM takes a real factor; multiply by a complex one "
              "before, and use SUM");
  TORCH_CHECK(!factor || !c10::isIntegralType(type, /*includeBool=*/true) ||
                  isWhole(*factor),
              "commsir: ", name, ": PREMUL_SUM would cut off the factor of ",
              type, " to an integer; convert the tensor to a floating type");
  TORCH_CHECK(!(op == ReduceOp::AVG && type == at::kBool), "commsir: ", name,
              ": Cannot use ReduceOp.AVG with Boolean inputs; use a number");
}

/// Gloo calculates with the bytes of booleans.
ReduceOp Call::delegatedOp(const ReduceOp &op) const {
  const at::Tensor &known = inputs.front();
  if (known.scalar_type() != at::kBool || !known.is_cpu() ||
      op == ReduceOp::PREMUL_SUM)
    return op;
  std::string_view kind = reductionName(op, /*isBool=*/true);
  return kind == "or"    ? ReduceOp::BOR
         : kind == "and" ? ReduceOp::BAND
                         : ReduceOp::BXOR;
}

void Call::reduceStep(const char *op, const ReduceOp &reduceOp, at::Tensor in,
                      at::Tensor out, int64_t ranks, int64_t root,
                      bool result) {
  checkReduction(name, reduceOp, in);
  auto type = in.scalar_type();
  const char *named = namedType(type);
  if (c10::isComplexType(type)) {
    named = type == at::kComplexFloat  ? "halves of complex<f32>"
            : type == at::kComplexHalf ? "halves of complex<f16>"
                                       : named;
    in = at::view_as_real(in);
    out = out.defined() ? at::view_as_real(out) : out;
    type = in.scalar_type();
  }
  const char *kind = reductionName(reduceOp, type == at::kBool);
  bool order = reduceOp == ReduceOp::MIN || reduceOp == ReduceOp::MAX;
  if (order && isUnsigned(type)) {
    at::Tensor turned = kept.emplace_back(at::empty_like(in));
    pack.push_back([=] { turnTopBit(turned, in); });
    if (result)
      unpack.insert(unpack.begin(), [=] { turnTopBit(out, out); });
    in = turned;
  }
  if (reduceOp == ReduceOp::PREMUL_SUM) {
    at::Tensor scaled = kept.emplace_back(at::empty_like(in));
    pack.push_back([=] { multiply(scaled, in, reduceOp); });
    in = scaled;
  }
  if (reduceOp == ReduceOp::AVG && c10::isIntegralType(type, false)) {
    kind = "sum";
    if (result)
      unpack.insert(unpack.begin(), [=] { divide(out, ranks); });
  }
  reduction = kind;
  const char *element = reducedType(type);
  if (!*element)
    notOwn = std::string("element type ") + c10::toString(type);
  steps.push_back({op, kind, element, root, address(in), in.numel(),
                   address(out), out.defined() ? out.numel() : 0, named});
}

/// Not what reduceStep puts something around, or refuses.
static bool isPlain(const ReduceOp &reduceOp, at::ScalarType type) {
  bool isPlain = reduceOp == ReduceOp::SUM || reduceOp == ReduceOp::PRODUCT ||
                 (reduceOp == ReduceOp::AVG && c10::isFloatingType(type)) ||
                 ((reduceOp == ReduceOp::MIN || reduceOp == ReduceOp::MAX) &&
                  !isUnsigned(type));
  return isPlain && *reducedType(type) && type != at::kBool;
}

bool Call::reducePartsStep(const char *op, const ReduceOp &reduceOp,
                           const std::vector<at::Tensor> &in,
                           const at::Tensor &out, int64_t each) {
  auto type = out.scalar_type();
  if (!isPlain(reduceOp, type))
    return false;
  reduction = reductionName(reduceOp, /*isBool=*/false);
  std::shared_ptr<const Parts> parts = partsOf(in, {out}, each);
  steps.push_back({op, reduction, reducedType(type), 0, nullptr,
                   each * static_cast<int64_t>(in.size()), nullptr, each,
                   namedType(type), parts});
  return true;
}

bool PlainCall::reduces(const char *op, const ReduceOp &reduceOp) {
  auto type = input.scalar_type();
  if (!isPlain(reduceOp, type) || !isPlainLayout())
    return false;
  const char *element = reducedType(type);
  step = {op,
          reductionName(reduceOp, /*isBool=*/false),
          element,
          0,
          input.data_ptr(),
          input.numel(),
          output.data_ptr(),
          output.numel(),
          namedType(type)};
  return true;
}

void Call::drop() {
  for (auto *tensors : {&inputs, &outputs, &kept})
    tensors->clear();
  for (auto *copies : {&before, &after, &pack, &unpack})
    copies->clear();
  own = nullptr;
  compare = nullptr;
  delegated = nullptr;
  begins = nullptr;
}

void Call::write(CallRecord &record) const {
  record.name = name;
  record.reduction = reduction;
  record.root = root;
  record.pointToPoint = pointToPoint;
  record.sequence = sequence;
  for (const at::Tensor &tensor : inputs)
    record.inputs.add(tensor.sizes(), tensor.scalar_type());
  for (const at::Tensor &tensor : outputs)
    record.outputs.add(tensor.sizes(), tensor.scalar_type());
  record.timeout = timeout;
}

CallRecord Call::record() const {
  CallRecord made;
  write(made);
  return made;
}

void PlainCall::write(CallRecord &record) const {
  record.name = name();
  record.reduction = step.reduction;
  record.root = root;
  record.sequence = sequence;
  record.inputs.add(input.sizes(), input.scalar_type());
  record.outputs.add(output.sizes(), output.scalar_type());
  record.timeout = timeout;
}

CallRecord PlainCall::record() const {
  CallRecord made;
  write(made);
  return made;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Events &Events::get() {
  static auto *events = new Events;
  return *events;
}

c10::Event Events::record(const c10::Stream &stream) {
  std::optional<c10::Event> event;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // Mostly there is but one device.
    auto last = std::find_if(idle.rbegin(), idle.rend(), [&](auto &one) {
      return one.device() == stream.device();
    });
    if (last != idle.rend()) {
      event = std::move(*last);
      idle.erase(std::next(last).base());
    }
  }
  if (!event)
    event.emplace(stream.device_type());
  event->record(stream);
  return std::move(*event);
}

void Events::give(c10::Event event) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(event));
}

CallWork::CallWork(int rank, c10d::OpType type, const char *title,
                   std::vector<at::Tensor> inputs,
                   std::vector<at::Tensor> outputs, uint64_t sequence,
                   milliseconds timeout,
                   std::function<void(const std::string &)> abortGroup,
                   std::function<void(const c10::Device &)> pollGroup)
    : Work(rank, type, title, inputs), outputs(std::move(outputs)),
      sequence(sequence), timeout(timeout), abortGroup(std::move(abortGroup)),
      pollGroup(std::move(pollGroup)) {}

CallWork::~CallWork() {
  for (std::optional<c10::Event> *event : {&end, &copied})
    if (*event)
      Events::get().give(std::move(**event));
}

void CallWork::complete(std::exception_ptr error) {
  c10::intrusive_ptr<c10::ivalue::Future> waiting;
  {
    // Who has waited and asks for the future next gets one that is done.
    std::lock_guard<std::mutex> lock(innerMutex);
    finish(error);
    settled = true;
    waiting = future;
  }
  if (!waiting)
    return;
  if (error)
    return waiting->setError(error);
  try {
    waiting->markCompleted(c10::IValue(outputs));
  } catch (...) { // Memory has run out before, or a callback has failed after.
    if (waiting->completed())
      throw;
    waiting->setError(std::current_exception());
  }
}

c10::intrusive_ptr<c10::ivalue::Future> CallWork::futureMade() {
  std::lock_guard<std::mutex> lock(innerMutex);
  return future;
}

void CallWork::begun(WorkPtr started,
                     std::vector<std::function<void()>> finishers) {
  std::lock_guard<std::mutex> lock(innerMutex);
  if (started)
    inner.push_back(std::move(started));
  for (auto &finisher : finishers)
    after.push_back(std::move(finisher));
  isApart |= !after.empty();
}

void CallWork::recordEnd(const c10::Stream &stream, bool host, bool later) {
  hostWaits = host;
  used = stream;
  if (!later)
    ended();
}

c10::Event *CallWork::ended() {
  if (!used)
    return nullptr;
  std::lock_guard<std::mutex> lock(endMutex);
  if (!end)
    end = Events::get().record(*used);
  return &*end;
}

bool CallWork::isCompleted() {
  if (!Work::isCompleted())
    return false;
  if (auto made = futureMade(); made && !made->completed())
    return false;
  TORCH_CHECK(
      !used || !isCapturing(used->device()),
      "commsir: ", c10d::opTypeToString(opType_), " number ", sequence,
      ": nothing is completed while a graph is captured; wait() for it, "
      "which is recorded, too");
  if (c10::Event *event = ended(); event && !event->query())
    return false;
  {
    std::lock_guard<std::mutex> lock(innerMutex);
    for (const WorkPtr &work : inner)
      if (!work->isCompleted())
        return false;
  }
  // What has failed is over, and has nothing to copy. NCCL's work does not
  // tell.
  return (!used && !isSuccess()) || hasCopiedBack();
}

bool CallWork::isSuccess() const {
  if (!Work::isSuccess())
    return false;
  std::lock_guard<std::mutex> lock(innerMutex);
  for (const WorkPtr &work : inner)
    if (!work->isSuccess())
      return false;
  return true;
}

int CallWork::sourceRank() const {
  std::lock_guard<std::mutex> lock(innerMutex);
  TORCH_CHECK(!inner.empty(),
              "commsir: sourceRank() is defined only for a receive");
  return inner.front()->sourceRank();
}

std::vector<at::Tensor> CallWork::result() { return outputs; }

void CallWork::synchronize() {
  if (!used)
    return;
  c10::Stream current = currentOn(used->device());
  if (current != *used)
    ended()->block(current);
}

void CallWork::blockCurrentStream() { wait(c10d::kUnsetTimeout); }

/// Waits for the sends and receives that the call began.
void CallWork::settle(milliseconds given) {
  std::vector<WorkPtr> works;
  {
    std::lock_guard<std::mutex> lock(innerMutex);
    // Gloo would wait for another message; on a GPU, each stream waits.
    if (!waited || used)
      works = inner;
  }
  for (const WorkPtr &work : works)
    waitInterruptibly(work, given.count() > 0 ? given : kNoTimeout, [&] {
      work->abort();
      abortGroup("it was interrupted while it waited");
    });
  {
    std::lock_guard<std::mutex> lock(innerMutex);
    waited = true;
  }
  copyBack();
  if (copied)
    copied->block(currentOn(used->device()));
}

bool CallWork::mustCopyBack() {
  std::lock_guard<std::mutex> lock(innerMutex);
  return isApart;
}

void CallWork::copyBack() {
  if (!mustCopyBack())
    return;
  std::lock_guard<std::mutex> turn(copying);
  std::vector<std::function<void()>> copies;
  {
    std::lock_guard<std::mutex> lock(innerMutex);
    copies.swap(after);
  }
  if (copies.empty())
    return;
  at::AutoDispatchBelowADInplaceOrView guard;
  for (auto &copy : copies)
    copy();
  if (used)
    copied = Events::get().record(currentOn(used->device()));
  std::lock_guard<std::mutex> lock(innerMutex);
  isApart = false;
}

bool CallWork::hasCopiedBack() {
  if (mustCopyBack()) {
    // Tensors that are copied from are kept for that stream.
    c10::OptionalStreamGuard guard;
    if (used)
      guard.reset_stream(*used);
    copyBack();
  }
  return !copied || copied->query();
}

void CallWork::giveUp(milliseconds limit, const char *why) {
  std::string what =
      isInterrupted()
          ? c10::str("it was interrupted while it waited for ",
                     c10d::opTypeToString(opType_), " number ", sequence)
          : c10::str("commsir: Timed out waiting ", limit.count(), "ms for ",
                     c10d::opTypeToString(opType_), " number ", sequence, ": ",
                     why);
  abortGroup(what);
  throwInterrupt();
  C10_THROW_ERROR(DistBackendError, what);
}

void CallWork::waitForEnd(milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + limit, ask = Clock::now() + kAsk;
  while (!ended()->query()) {
    // Asking takes Python's lock: less often than the GPU is looked at.
    bool asks = Clock::now() >= ask;
    if (asks)
      ask = Clock::now() + kAsk;
    if ((asks && isInterrupted()) || Clock::now() > deadline)
      giveUp(limit, "it is still running on the GPU; another rank may not have "
                    "called it");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool CallWork::wait(milliseconds given) {
  bool isGiven = given.count() > 0;
  milliseconds limit = isGiven ? given : timeout;
  Interruptible scope;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // The call's own wait knows who is late, and has as long.
    auto deadline = std::chrono::steady_clock::now() + limit +
                    (isGiven ? milliseconds(0) : kGrace);
    if (!waitAsking(cv_, lock, deadline, [&] { return completed_; })) {
      lock.unlock();
      giveUp(limit, "another rank has not called it");
    }
  }
  // The group's thread marks the future next: who has waited finds it done. On
  // a GPU it was before anybody had the work.
  if (auto made = used ? nullptr : futureMade())
    made->wait();
  if (std::exception_ptr error = exception())
    std::rethrow_exception(error);
  settle(given);
  synchronize();
  // A handler may have raised while the call came to its end.
  throwInterrupt();
  // As NCCL has it: who names a time waits here, and not only in the stream.
  // In a capture there is the stream alone.
  if (!used || !(isGiven || hostWaits) || isCapturing(used->device()))
    return true;
  if (isGiven)
    waitForEnd(given);
  else
    ended()->synchronize();
  // A kernel that gave up has ended, too.
  pollGroup(used->device());
  return true;
}

void CallWork::abort() {
  abortGroup("its work was aborted");
  std::lock_guard<std::mutex> lock(innerMutex);
  for (const WorkPtr &work : inner)
    work->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> CallWork::getFuture() {
  if (c10d::isP2POp(opType_))
    return Work::getFuture();
  std::lock_guard<std::mutex> lock(innerMutex);
  if (future)
    return future;
  std::vector<c10::Device> devices;
  if (!outputs.empty() && !outputs.front().is_cpu())
    devices.push_back(outputs.front().device());
  future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()), devices);
  if (!settled)
    return future;
  if (std::exception_ptr error = exception())
    future->setError(error);
  else {
    // It records an event in the current stream: the call's own, for the
    // caller's has not been asked to wait.
    c10::OptionalStreamGuard guard;
    if (used)
      guard.reset_stream(*used);
    future->markCompleted(c10::IValue(outputs));
  }
  return future;
}
