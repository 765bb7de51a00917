//===- Inputs.h - Filling a world's memory ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_INPUTS_H
#define COMMSIR_RUNTIME_DRIVER_INPUTS_H

#include "runtime/driver/Arguments.h"

namespace commsir::driver {

/// Fills `memory`, the part of `rank` of `argument` (static shape), as
/// described by --input `value`: a file, a number, zeros, iota or random:SEED.
/// Errors name the file or the value.
llvm::Error fillInput(const Argument &argument, llvm::StringRef value,
                      int64_t rank, llvm::MutableArrayRef<char> memory);

/// Checks that a file of `shape` and element type matches `argument`.
llvm::Error checkFile(const Argument &argument, llvm::StringRef path,
                      llvm::ArrayRef<int64_t> shape);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_INPUTS_H
