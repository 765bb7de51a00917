//===- Register.h - Registration of dialects and passes ---------*- C++ -*-===//
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
/// lowered through. Loads none; parsing or a pass does that.
void registerAllDialects(DialectRegistry &registry);

/// Registers the passes and pipelines of CommsIR for textual pipelines. Called
/// once per process.
void registerPasses();

/// Hides LLVM's own options in --help, so that it shows only the tool's options
/// (--help-hidden lists all). Must be called before other options are created.
void hideLLVMOptions();

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_REGISTER_H
