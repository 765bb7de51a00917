//===- TeamNumbers.h - Teams as three numbers -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers teams, on every target, to index values that translate ranks. The
// arithmetic follows the Spec and folds constants.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H
#define COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H

#include "dialect/Comms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::comms {

/// A team as index values: world rank w is a member if (w - first) / stride is
/// an integer below size.
struct TeamNumbers {
  Value first, stride, size;
};

/// This rank and its world, as index values.
struct ThisRank {
  Value rank, ranks, lsaSize;
};

/// The teams of the kernel being lowered.
class TeamTable {
public:
  /// `target` is the kind of kernel in errors: "a CPU kernel".
  explicit TeamTable(StringRef target) : target(target) {}

  /// Returns the numbers of a team that was lowered before, or emits an error.
  FailureOr<TeamNumbers> get(Value team) const;
  /// World rank of rank `rank` of `team`.
  FailureOr<Value> worldRank(Value team, Value rank,
                             ImplicitLocOpBuilder &b) const;
  /// Lowers a team, team_split, rank, size or translate_rank op. `constant`
  /// makes index constants.
  LogicalResult lower(Operation *op, const ThisRank &me,
                      llvm::function_ref<Value(int64_t)> constant,
                      RewriterBase &rewriter, ImplicitLocOpBuilder &b);

private:
  StringRef target;
  llvm::DenseMap<Value, TeamNumbers> teams;
};

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H
