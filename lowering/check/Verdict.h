//===- Verdict.h - The checker's verdict on a kernel ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verdict on a kernel is an error (which shows a failing schedule),
// "proven" or "not decided". The checker stores the last two in an attribute of
// the kernel, with the simulated world, the assumptions, and the open
// questions. All reports read that attribute.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_VERDICT_H
#define COMMSIR_LOWERING_CHECK_VERDICT_H

#include "lowering/check/Machine.h"

namespace mlir::comms::check {

struct Verdict {
  /// The simulated world. `ranks` may be fewer than the kernel runs on, and
  /// `followedRanks` fewer than `ranks`.
  int64_t ranks = 0, followedRanks = 0, blocks = 0, launches = 0;
  /// Number of classes whose blocks were simulated as one; 0: each block was
  /// simulated.
  int64_t blockClasses = 0;
  std::vector<std::string> assumptions;
  /// Outputs that are proven to match `comms.computes`.
  std::vector<std::string> computes;
  /// Whether that proof assumes that windows are zero before each launch.
  bool assumesZeros = false;
  /// Whether the order of some writes rests on packets_cumulative (M25).
  bool assumesChains = false;
  /// Contents of arrays after the first launch, if requested.
  std::vector<std::string> computed;
  /// Reasons why the kernel is not proven; empty: it is proven.
  std::vector<std::string> reasons;

  bool isProven() const { return reasons.empty(); }
  /// Records a reason and emits it at `op`, as a remark or a warning.
  void leaveOpen(Operation *op, const llvm::Twine &reason,
                 bool isWarning = false);
  void leaveOpen(const UnprovenReason &reason, bool isWarning = false);
  DictionaryAttr toAttribute(MLIRContext *context) const;
};

/// Assumptions of a proof of `program`, by their names in docs/Spec.md.
std::vector<std::string> findAssumptions(const Program &program,
                                         const WorldShape &shape);

/// Memory that the program accesses through two proxies without a fence between
/// them (M11).
std::vector<UnprovenReason> findUnfencedProxies(const Program &program);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_VERDICT_H
