//===- Arguments.h - A kernel's arguments and what binds them ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_ARGUMENTS_H
#define COMMSIR_RUNTIME_DRIVER_ARGUMENTS_H

#include "dialect/Comms.h"
#include "runtime/driver/Options.h"
#include "runtime/jit/Compile.h"
#include "runtime/support/Element.h"

#include "llvm/ADT/StringMap.h"

namespace commsir::driver {

/// An argument of the kernel as the user wrote it.
struct Argument {
  std::string name;
  jit::ArgKind kind = jit::ArgKind::Memory;
  /// As MLIR prints it.
  std::string elementType;
  /// None: no .npy file or generator supports the type.
  std::optional<Element> element;
  /// Shape of one rank's part; ShapedType::kDynamic marks open dimensions.
  llvm::SmallVector<int64_t> shape;

  bool isStatic() const;
  /// "window of 8x64 bf16".
  std::string describe() const;
  /// Bytes of one rank's part, or none on overflow or if a dimension is open.
  std::optional<uint64_t> bytes() const;
};

/// The arguments of `kernel`, in order.
std::vector<Argument> listArguments(mlir::comms::KernelOp kernel);

/// The argument that `binding` (of an `option` such as "--input") names. The
/// error lists the names and suggests the closest.
llvm::Expected<const Argument *>
findArgument(llvm::ArrayRef<Argument> arguments, llvm::StringRef option,
             const Binding &binding);

/// Replaces every %r in `pattern` by `rank`.
std::string substituteRank(llvm::StringRef pattern, int64_t rank);

/// Whether `value` of an --input names a file, that is, neither a number nor a
/// generator.
bool isFileInput(llvm::StringRef value);

/// Shapes of arguments with open dimensions, from --shape or from rank 0's
/// files of --input and --expect.
llvm::Expected<llvm::StringMap<llvm::SmallVector<int64_t>>>
gatherShapes(llvm::ArrayRef<Argument> arguments, const Options &options);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_ARGUMENTS_H
