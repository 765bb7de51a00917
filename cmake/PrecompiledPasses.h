//===- PrecompiledPasses.h - Headers that most passes need ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that includes NVVMDialect.h compiles in 8 s without this file, and in
// less than 1 s with it (clang 22). Sources still include what they use.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_CMAKE_PRECOMPILEDPASSES_H
#define COMMSIR_CMAKE_PRECOMPILEDPASSES_H

#include "cmake/Precompiled.h"

#include "dialect/Comms.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#endif // COMMSIR_CMAKE_PRECOMPILEDPASSES_H
