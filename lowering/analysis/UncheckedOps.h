//===- UncheckedOps.h - What a kernel must not hold -------------*- C++ -*-===//
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

/// Refuses `op`, an op of a kernel, unless the list of what kernels hold has
/// it. The list leaves out what could reach memory that no check guards, leave
/// the kernel or end the process: pointers, calls, assertions, views whose
/// bounds are not known, values that are not defined, memory that the kernel
/// would have to free, types that need a library.
LogicalResult refuseUnchecked(Operation *op);

/// Refuses all that stands in `module` but kernels, whose ops are checked as
/// above, and functions of func, which no kernel calls. Refuses attributes of
/// other dialects on the module, the kernels and their arguments.
LogicalResult refuseBesideKernels(ModuleOp module);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_UNCHECKEDOPS_H
