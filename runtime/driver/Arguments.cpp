//===- Arguments.cpp - A kernel's arguments and what binds them -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Arguments.h"

#include "runtime/driver/Npy.h"

#include "llvm/ADT/StringExtras.h"

using namespace commsir;
using namespace commsir::driver;
using mlir::ShapedType;

bool Argument::isStatic() const {
  return llvm::none_of(shape, ShapedType::isDynamic);
}

std::string Argument::describe() const {
  if (kind == jit::ArgKind::Scalar)
    return "scalar of " + elementType;
  return (jit::stringifyArgKind(kind) + " of " + renderShape(shape) + " ")
             .str() +
         elementType;
}

std::optional<uint64_t> Argument::bytes() const {
  uint64_t total = element ? elementBytes(*element) : 8;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(total, uint64_t(dim), &total))
      return std::nullopt;
  return total;
}

std::vector<Argument>
commsir::driver::listArguments(mlir::comms::KernelOp kernel) {
  std::vector<Argument> arguments;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Argument argument;
    argument.name = kernel.getArgumentName(index);
    mlir::Type element = mlir::IntegerType::get(kernel.getContext(), 64);
    if (auto window = mlir::dyn_cast<mlir::comms::WindowType>(type)) {
      argument.kind = jit::ArgKind::Window;
      argument.shape = llvm::to_vector(window.getShape());
      element = window.getElementType();
    } else if (auto memref = mlir::dyn_cast<mlir::MemRefType>(type)) {
      argument.kind = jit::ArgKind::Memory;
      argument.shape = llvm::to_vector(memref.getShape());
      element = memref.getElementType();
    } else if (auto signal = mlir::dyn_cast<mlir::comms::SignalType>(type)) {
      argument.kind = jit::ArgKind::Signal;
      argument.shape = {signal.getCount()};
    } else if (auto counter = mlir::dyn_cast<mlir::comms::CounterType>(type)) {
      argument.kind = jit::ArgKind::Counter;
      argument.shape = {counter.getCount()};
    } else {
      argument.kind = jit::ArgKind::Scalar;
      element = type;
    }
    llvm::raw_string_ostream(argument.elementType) << element;
    argument.element = parseElement(argument.elementType);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

llvm::Expected<const Argument *>
commsir::driver::findArgument(llvm::ArrayRef<Argument> arguments,
                              llvm::StringRef option, const Binding &binding) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Argument &argument : arguments) {
    if (argument.name == binding.name)
      return &argument;
    names.push_back(argument.name);
  }
  std::string text = (option + " " + binding.name).str();
  if (!binding.value.empty())
    text += "=" + binding.value;
  text += ": the kernel has no argument '" + binding.name + "'";
  text += didYouMean(binding.name, names, ".");
  text += names.empty() ? " It has none" : " Its arguments:";
  for (const Argument &argument : arguments)
    text += "\n  " + argument.name + ": " + argument.describe();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

std::string commsir::driver::substituteRank(llvm::StringRef pattern,
                                            int64_t rank) {
  std::string out;
  std::string number = std::to_string(rank);
  for (size_t at; (at = pattern.find("%r")) != llvm::StringRef::npos;
       pattern = pattern.drop_front(at + 2))
    out += (pattern.take_front(at) + number).str();
  return out + pattern.str();
}

bool commsir::driver::isFileInput(llvm::StringRef value) {
  if (value == "zeros" || value == "iota" || value.starts_with("random:") ||
      value == "random" || value == "%r")
    return false;
  double number;
  return value.getAsDouble(number);
}

/// Reads "8x64".
static llvm::Expected<llvm::SmallVector<int64_t>>
readShape(const Binding &binding) {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(binding.value).split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t dim;
    if (part.getAsInteger(10, dim) || dim < 0)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "--shape " + binding.name + "=" + binding.value +
              ": not a shape; write numbers with x between them, as 8x64");
    shape.push_back(dim);
  }
  return shape;
}

llvm::Expected<llvm::StringMap<llvm::SmallVector<int64_t>>>
commsir::driver::gatherShapes(llvm::ArrayRef<Argument> arguments,
                              const Options &options) {
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  for (const Binding &binding : options.shapes) {
    auto argument = findArgument(arguments, "--shape", binding);
    if (!argument)
      return argument.takeError();
    if ((*argument)->kind != jit::ArgKind::Window &&
        (*argument)->kind != jit::ArgKind::Memory)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "--shape " + binding.name + "=" + binding.value + ": '" +
              binding.name + "' is a " + (*argument)->describe() +
              ", which has no open shape; leave it out");
    auto shape = readShape(binding);
    if (!shape)
      return shape.takeError();
    shapes[binding.name] = *shape;
  }
  // A file gives a shape only where one is open: for all others the files are
  // compared with the kernel when they are read.
  auto fromFiles = [&](const std::vector<Binding> &bindings) -> llvm::Error {
    for (const Binding &binding : bindings) {
      const Argument *argument = llvm::find_if(arguments, [&](auto &candidate) {
        return candidate.name == binding.name;
      });
      if (argument == arguments.end() || argument->isStatic() ||
          shapes.count(binding.name) || !isFileInput(binding.value))
        continue;
      llvm::Expected<Npy> npy = Npy::open(substituteRank(binding.value, 0));
      if (!npy)
        return npy.takeError();
      shapes[binding.name] = llvm::to_vector(npy->shape());
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = fromFiles(options.inputs))
    return error;
  if (llvm::Error error = fromFiles(options.expects))
    return error;
  return shapes;
}
