//===- Tensors.cpp - Tensors of ops: types, memory, shapes ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/Tensors.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>

using namespace commsir::torch_ops;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

const char *commsir::torch_ops::typeName(ScalarType type) {
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

const char *commsir::torch_ops::givenName(ScalarType type) {
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

ScalarType commsir::torch_ops::partOf(ScalarType type, bool isMoved) {
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

std::string commsir::torch_ops::reductionFor(ScalarType type,
                                             const std::string &reduce) {
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

ScalarType commsir::torch_ops::typeNamed(std::string_view name) {
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

Tensor commsir::torch_ops::dense(const Tensor &tensor) {
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

Tensor commsir::torch_ops::calculable(const Tensor &tensor) {
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

void commsir::torch_ops::requireTensor(const char *what, const Tensor &tensor) {
  if (!tensor.defined())
    throw std::runtime_error(std::string("commsir: ") + what +
                             " is None, not a tensor");
}

void commsir::torch_ops::requireDevice(const char *what, const Tensor &tensor,
                                       const Tensor &input) {
  requireTensor(what, tensor);
  Device own = deviceOf(tensor), wanted = deviceOf(input);
  if (own != wanted)
    throw std::runtime_error(std::string("commsir: ") + what + " is on " +
                             nameOf(own) + ", but the input on " +
                             nameOf(wanted) + "; move them to one device");
}

void commsir::torch_ops::requireContiguous(const Tensor &out) {
  if (!out.is_contiguous())
    throw std::runtime_error(
        "commsir: an output must be contiguous: pass a contiguous tensor, and "
        "copy it from there");
  requireStorage(out);
}

void commsir::torch_ops::requireShares(int64_t rows, int64_t ranks) {
  if (rows % ranks)
    throw std::runtime_error("commsir: " + std::to_string(rows) +
                             " rows cannot be shared out to " +
                             std::to_string(ranks) + " ranks");
}

std::vector<int64_t> commsir::torch_ops::shapeOfRows(const Tensor &input,
                                                     int64_t numerator,
                                                     int64_t denominator) {
  std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
  if (shape.empty())
    shape.push_back(1);
  requireShares(shape[0], denominator);
  shape[0] = shape[0] / denominator * numerator;
  return shape;
}

/// Whether `out` has that shape. Allocates nothing, because each call with an
/// output asks it.
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

void commsir::torch_ops::requireResult(const Tensor &out, const Tensor &input,
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

Tensor commsir::torch_ops::emptyOf(const Tensor &like,
                                   const std::vector<int64_t> &shape,
                                   std::optional<ScalarType> type) {
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
