//===- RuntimeSymbols.h - Functions that compiled kernels call --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_RUNTIMESYMBOLS_H
#define COMMSIR_RUNTIME_JIT_RUNTIMESYMBOLS_H

#include "llvm/ADT/ArrayRef.h"

namespace commsir::jit {

/// A function that compiled kernels call, and its address.
struct RuntimeSymbol {
  const char *name;
  void *address;
};

/// All functions of the ABI (lowering/cpu/Abi.h), and those that code
/// generation calls. runtime/cpu/Runtime.cpp defines them.
llvm::ArrayRef<RuntimeSymbol> getRuntimeSymbols();

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_RUNTIMESYMBOLS_H
