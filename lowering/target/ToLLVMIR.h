//===- ToLLVMIR.h - From the LLVM dialect to LLVM IR ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_TOLLVMIR_H
#define COMMSIR_LOWERING_TARGET_TOLLVMIR_H

#include "mlir/IR/DialectRegistry.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace mlir {
class ModuleOp;
namespace comms {

/// Registers the interfaces for translating the LLVM dialect.
void registerLLVMIRTranslationInterfaces(DialectRegistry &registry);

/// Translates a module of the LLVM dialect. Returns null after diagnostics on
/// failure.
std::unique_ptr<llvm::Module> translateToLLVMIR(ModuleOp module,
                                                llvm::LLVMContext &context);

} // namespace comms
} // namespace mlir

#endif // COMMSIR_LOWERING_TARGET_TOLLVMIR_H
