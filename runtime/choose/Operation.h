//===- Operation.h - The operations that tables cover -----------*- C++ -*-===//
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
  /// All-reduce of rows, addition of a residual, and RMSNorm with a weight.
  /// Results are the normalized rows and the residual for the next layer. With
  /// fp8, each normalized row is stored in fp8 with its own scale.
  AllReduceRmsNorm,
  AllReduceRmsNormFp8
};

/// "all_reduce".
llvm::StringRef operationName(Operation operation);

/// Parses an operation's name; the error lists all names.
llvm::Expected<Operation> parseOperation(llvm::StringRef name);

/// All operations on flat arrays, in the order of --help.
llvm::ArrayRef<Operation> allOperations();

/// The operations on rows.
llvm::ArrayRef<Operation> rowOperations();
bool isOnRows(Operation operation);

/// Flat operations: the text between the op's name and its team in a kernel:
/// "sum ", "root 0 " or "".
llvm::StringRef operationDetail(Operation operation);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_OPERATION_H
