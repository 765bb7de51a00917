//===- Shapes.cpp - Dynamic dimensions made static ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Shapes.h"

#include "dialect/Spelling.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::comms;

namespace {

/// Shape, element type and the type with another shape, of a window or memref.
struct Array {
  ArrayRef<int64_t> shape;
  Type type;

  static std::optional<Array> of(Type type) {
    if (auto window = dyn_cast<WindowType>(type))
      return Array{window.getShape(), type};
    if (auto memref = dyn_cast<MemRefType>(type))
      return Array{memref.getShape(), type};
    return std::nullopt;
  }
  bool isOpen() const {
    return llvm::is_contained(shape, ShapedType::kDynamic);
  }
  Type withShape(ArrayRef<int64_t> closed) const {
    if (auto window = dyn_cast<WindowType>(type))
      return WindowType::get(type.getContext(), closed,
                             window.getElementType());
    return MemRefType::Builder(cast<MemRefType>(type)).setShape(closed);
  }
};

} // namespace

static std::string print(ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (auto [i, dim] : llvm::enumerate(shape))
    text +=
        (i ? ", " : "") +
        (dim == ShapedType::kDynamic ? std::string("?") : std::to_string(dim));
  return text + ")";
}

/// The argument's type with the sizes of `given`; null, with a diagnostic, when
/// they do not fit.
static Type closeArgument(KernelOp kernel, unsigned index, const Array &array,
                          ArrayRef<int64_t> given) {
  std::string name = kernel.getArgumentName(index);
  bool fits = given.size() == array.shape.size();
  for (size_t i = 0; fits && i < given.size(); ++i)
    fits = given[i] >= 0 && (array.shape[i] == ShapedType::kDynamic ||
                             array.shape[i] == given[i]);
  if (fits)
    return array.withShape(given);
  kernel.emitError("argument '")
      << name << "' has shape " << print(array.shape)
      << " in the kernel, but its array has shape " << print(given);
  return {};
}

/// Gives memrefs that are taken from a window or passed through casts the
/// static type that their source has now.
static void propagate(KernelOp kernel) {
  kernel.getBody().walk<WalkOrder::PreOrder>([](Operation *op) {
    if (!isa<LocalOp, PeerOp, MultimemOp>(op))
      return;
    auto window = dyn_cast<WindowType>(op->getOperand(0).getType());
    auto view = dyn_cast<MemRefType>(op->getResult(0).getType());
    if (window && view && window.getShape().size() == view.getShape().size())
      op->getResult(0).setType(
          MemRefType::Builder(view).setShape(window.getShape()));
  });
}

/// Every shape has to be a window's or a memref's.
static LogicalResult
checkNames(KernelOp kernel,
           const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes) {
  std::vector<std::string> names;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (Array::of(type))
      names.push_back(kernel.getArgumentName(i));
  for (const auto &given : shapes) {
    if (llvm::is_contained(names, given.first()))
      continue;
    return kernel.emitError("has no window or memref '")
           << given.first() << "' to give a shape to"
           << commsir::didYouMean(given.first(),
                                  llvm::SmallVector<llvm::StringRef>(
                                      names.begin(), names.end()));
  }
  return success();
}

LogicalResult commsir::jit::specialize(
    KernelOp kernel,
    const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes) {
  if (failed(checkNames(kernel, shapes)))
    return failure();
  SmallVector<Type> types(kernel.getArgumentTypes());
  if (kernel.getBody().empty())
    return kernel.emitError("has no body");
  bool changed = false;
  for (unsigned i = 0; i < types.size(); ++i) {
    std::optional<Array> array = Array::of(types[i]);
    if (!array)
      continue;
    auto given = shapes.find(kernel.getArgumentName(i));
    if (given == shapes.end()) {
      if (array->isOpen())
        return kernel.emitError("argument '")
               << kernel.getArgumentName(i) << "' has shape "
               << print(array->shape) << ": give it an array, or its shape";
      continue;
    }
    Type closed = closeArgument(kernel, i, *array, given->second);
    if (!closed)
      return failure();
    changed |= closed != types[i];
    types[i] = closed;
    kernel.getBody().front().getArgument(i).setType(closed);
  }
  if (!changed)
    return success();
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
  propagate(kernel);
  return verify(kernel);
}
