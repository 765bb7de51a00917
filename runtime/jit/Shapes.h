//===- Shapes.h - Dynamic dimensions made static ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel may leave dimensions of its windows and memrefs open (`?`). They are
// fixed from the shapes of the inputs before lowering.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_SHAPES_H
#define COMMSIR_RUNTIME_JIT_SHAPES_H

#include "dialect/Comms.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace commsir::jit {

/// Sets the dynamic dimensions of `kernel` from `shapes` (argument name to
/// shape of one rank's array). Emits a diagnostic and fails if a shape does not
/// match its argument, names no argument, or leaves a dimension open.
mlir::LogicalResult
specialize(mlir::comms::KernelOp kernel,
           const llvm::StringMap<llvm::SmallVector<int64_t>> &shapes);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_SHAPES_H
