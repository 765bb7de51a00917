//===- TeamNumbers.h - Teams as three numbers -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every target makes of a team: index values from which ranks are
// translated. The arithmetic is the Spec's, and folds what is known.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H
#define COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H

#include "dialect/Comms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::comms {

/// A team as index values: world rank w is a member when (w - first) / stride
/// is a whole number below size.
struct TeamNumbers {
  Value first, stride, size;
};

/// The rank that runs, and its world; index values.
struct ThisRank {
  Value rank, ranks, lsaSize;
};

/// The teams of one kernel that is being lowered.
class TeamTable {
public:
  /// `target` names the kind of kernel in errors: "a CPU kernel".
  explicit TeamTable(StringRef target) : target(target) {}

  /// The numbers of a team that `lower` has seen, or an error at its place.
  FailureOr<TeamNumbers> get(Value team) const;
  /// World rank of rank `rank` of `team`.
  FailureOr<Value> worldRank(Value team, Value rank,
                             ImplicitLocOpBuilder &b) const;
  /// Lowers a team, team_split, rank, size or translate_rank op. `constant`
  /// gives an index constant.
  LogicalResult lower(Operation *op, const ThisRank &me,
                      llvm::function_ref<Value(int64_t)> constant,
                      RewriterBase &rewriter, ImplicitLocOpBuilder &b);

private:
  StringRef target;
  llvm::DenseMap<Value, TeamNumbers> teams;
};

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_TEAMNUMBERS_H
