//===- Operation.h - What is measured and chosen for ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_OPERATION_H
#define COMMSIR_RUNTIME_CHOOSE_OPERATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace commsir::tune {

enum class Operation {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  /// All-reduce of rows, residual added, RMSNorm with a weight: the normalized
  /// rows and the residual of the next layer come out. With fp8 the rows come
  /// out in fp8, each with a scale of its own.
  AllReduceRmsNorm,
  AllReduceRmsNormFp8
};

/// "all_reduce".
llvm::StringRef operationName(Operation operation);

/// The operation of that name; the error lists all.
llvm::Expected<Operation> parseOperation(llvm::StringRef name);

/// All operations on flat arrays, in the order of --help.
llvm::ArrayRef<Operation> allOperations();

/// Those on rows.
llvm::ArrayRef<Operation> rowOperations();
bool isOnRows(Operation operation);

/// Of a flat operation, what stands between the op's name and its team in a
/// kernel: "sum ", "root 0 " or nothing.
llvm::StringRef operationDetail(Operation operation);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_OPERATION_H
