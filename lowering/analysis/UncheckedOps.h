//===- UncheckedOps.h - Ops that kernels must not contain -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_UNCHECKEDOPS_H
#define COMMSIR_LOWERING_ANALYSIS_UNCHECKEDOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"

namespace mlir::comms {

/// Refuses `op`, an op of a kernel, unless it is on the list of supported ops.
/// The list excludes everything that could access memory without a check, leave
/// the kernel or end the process: pointers, calls, assertions, views with
/// unknown bounds, undefined values, memory that the kernel must free, and
/// types that need a library.
LogicalResult refuseUnchecked(Operation *op);

/// Refuses everything in `module` except kernels, whose ops are checked as
/// above, and functions of func, which no kernel calls. Refuses attributes of
/// other dialects on the module, the kernels and their arguments.
LogicalResult refuseBesideKernels(ModuleOp module);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_UNCHECKEDOPS_H
