//===- Translations.h - Targets of comms-translate --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each target of comms-translate is one function here; registerTranslations
// registers them.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TRANSLATIONS_H
#define COMMSIR_LOWERING_TRANSLATIONS_H

#include "lowering/target/ToLLVMIR.h"

namespace mlir {
namespace comms {

/// Registers `--comms-to-llvmir`, which translates a module of kernels to
/// textual LLVM IR by the pipeline comms-to-cpu. Modules of the LLVM dialect
/// are translated directly.
void registerTranslations();

/// Runs comms-translate with a program's arguments; returns its exit status.
int translateMain(int argc, char **argv);

} // namespace comms
} // namespace mlir

#endif // COMMSIR_LOWERING_TRANSLATIONS_H
