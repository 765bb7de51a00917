//===- Verdict.h - What the checker says of a kernel ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is refuted (errors show the schedule), proven, or not decided. The
// last two are written down as an attribute of the kernel, with what was
// followed, what is assumed and what was left open. Reports of all kinds read
// it there.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_VERDICT_H
#define COMMSIR_LOWERING_CHECK_VERDICT_H

#include "lowering/check/Machine.h"

namespace mlir::comms::check {

struct Verdict {
  /// What was followed. `ranks` may be fewer than the kernel runs on, and
  /// `followedRanks` fewer than those.
  int64_t ranks = 0, followedRanks = 0, blocks = 0, launches = 0;
  /// Classes of blocks that were followed as one each; 0: each block was.
  int64_t blockClasses = 0;
  std::vector<std::string> assumptions;
  /// Outputs that hold what the kernel says of them (`comms.computes`).
  std::vector<std::string> computes;
  /// That rests on windows that are zero before each launch.
  bool assumesZeros = false;
  /// The order of some writes rests on packets_cumulative (M25).
  bool assumesChains = false;
  /// What arrays hold after the first launch, where that was asked for.
  std::vector<std::string> computed;
  /// Why it is not proven; empty: it is.
  std::vector<std::string> reasons;

  bool isProven() const { return reasons.empty(); }
  /// Notes a reason, and says it: a remark at `op`, or a warning.
  void leaveOpen(Operation *op, const llvm::Twine &reason,
                 bool isWarning = false);
  void leaveOpen(const UnprovenReason &reason, bool isWarning = false);
  DictionaryAttr toAttribute(MLIRContext *context) const;
};

/// What a proof of `program` takes for granted, by the names of docs/Spec.md.
std::vector<std::string> findAssumptions(const Program &program,
                                         const WorldShape &shape);

/// Memory that is reached through two proxies by a program without a fence for
/// them (M11).
std::vector<UnprovenReason> findUnfencedProxies(const Program &program);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_VERDICT_H
