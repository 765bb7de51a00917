//===- Precompiled.h - Headers of MLIR that most files need -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The build parses these headers once. Without this file each source takes 11 s
// for them, with it 1.5 s (clang 22, 2 cores). Sources still include what they
// use.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_CMAKE_PRECOMPILED_H
#define COMMSIR_CMAKE_PRECOMPILED_H

// std::stable_sort and stable_partition of libstdc++ 12 call functions that
// C++17 deprecates; clang prints a page of warnings for each use.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
#include <algorithm>
#include <memory>
#pragma clang diagnostic pop

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/DialectConversion.h"

#endif // COMMSIR_CMAKE_PRECOMPILED_H
