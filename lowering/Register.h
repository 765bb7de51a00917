//===- Register.h - What a program must register to use CommsIR -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_REGISTER_H
#define COMMSIR_LOWERING_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::comms {

/// Registers the comms dialect and every dialect that kernels are written in or
/// lowered through. Nothing is loaded: parsing or a pass does that.
void registerAllDialects(DialectRegistry &registry);

/// Registers the passes and pipelines of CommsIR for textual pipelines. A
/// process calls it once.
void registerPasses();

/// --help is to tell of a tool's own options: hides those that are there by
/// themselves as soon as LLVM is linked (--help-hidden lists them). To be
/// called before any other is made.
void hideLLVMOptions();

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_REGISTER_H
