//===- Translations.h - Targets of comms-translate --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target of comms-translate is one function here; a further one joins by
// registering itself in registerTranslations.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TRANSLATIONS_H
#define COMMSIR_LOWERING_TRANSLATIONS_H

#include "lowering/target/ToLLVMIR.h"

namespace mlir {
namespace comms {

/// Registers `--comms-to-llvmir`: a module of kernels through the pipeline
/// comms-to-cpu (or one of the LLVM dialect already) to LLVM IR in text.
void registerTranslations();

} // namespace comms
} // namespace mlir

#endif // COMMSIR_LOWERING_TRANSLATIONS_H
