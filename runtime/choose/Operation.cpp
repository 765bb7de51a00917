//===- Operation.cpp - The operations that tables cover -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Operation.h"

#include "dialect/Collectives.h"
#include "dialect/Spelling.h"
#include "runtime/support/ForeignText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace commsir::tune;

namespace {
struct OperationRow {
  Operation operation;
  llvm::StringLiteral name;
};
} // namespace

static constexpr OperationRow kOperations[] = {
    {Operation::AllReduce, "all_reduce"},
    {Operation::AllGather, "all_gather"},
    {Operation::ReduceScatter, "reduce_scatter"},
    {Operation::AllToAll, "all_to_all"},
    {Operation::Broadcast, "broadcast"},
    {Operation::AllReduceRmsNorm, "all_reduce_rmsnorm"},
    {Operation::AllReduceRmsNormFp8, "all_reduce_rmsnorm_fp8"},
};

llvm::StringRef commsir::tune::operationName(Operation operation) {
  return kOperations[static_cast<unsigned>(operation)].name;
}

llvm::ArrayRef<Operation> commsir::tune::allOperations() {
  static constexpr Operation all[] = {
      Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
      Operation::AllToAll, Operation::Broadcast};
  return all;
}

llvm::ArrayRef<Operation> commsir::tune::rowOperations() {
  static constexpr Operation all[] = {Operation::AllReduceRmsNorm,
                                      Operation::AllReduceRmsNormFp8};
  return all;
}

bool commsir::tune::isOnRows(Operation operation) {
  return llvm::is_contained(rowOperations(), operation);
}

llvm::Expected<Operation> commsir::tune::parseOperation(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const OperationRow &row : kOperations) {
    if (row.name == name)
      return row.operation;
    names.push_back(row.name);
  }
  return llvm::createStringError(
      "there is no operation '" + showName(name.str()) + "'; there are " +
      llvm::join(names, ", ") + commsir::didYouMean(name, names));
}

llvm::StringRef commsir::tune::operationDetail(Operation operation) {
  const auto *kind = mlir::comms::findCollectiveKind(operationName(operation));
  assert(kind && "not on rows");
  return kind->reduces ? "sum " : kind->hasRoot() ? "root 0 " : "";
}
