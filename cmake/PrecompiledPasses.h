//===- PrecompiledPasses.h - Headers that most passes need ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without it a pass that includes NVVMDialect.h takes 8 s to compile, with it
// less than 1 s (clang 22). Files still include what they use.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_CMAKE_PRECOMPILEDPASSES_H
#define COMMSIR_CMAKE_PRECOMPILEDPASSES_H

#include "cmake/Precompiled.h"

#include "dialect/Comms.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#endif // COMMSIR_CMAKE_PRECOMPILEDPASSES_H
