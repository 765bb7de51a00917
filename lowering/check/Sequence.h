//===- Sequence.h - Launches of several kernels in turn ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joins kernels that share windows and signals into one kernel. Its launches do
// the work of the kernels' launches in turn, so the checker can treat them as
// one kernel. The host's accesses between launches become launches, too: the
// end of a launch is ordered before the next launch of the same rank, and not
// with other ranks.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_SEQUENCE_H
#define COMMSIR_LOWERING_CHECK_SEQUENCE_H

#include "dialect/Comms.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::comms::check {

/// Unit attribute of a joined kernel: its launches end after the first round of
/// turns, so no state has to repeat.
inline constexpr const char kOneRoundAttr[] = "comms.one_round";

/// A launch, or an access of the host.
struct Turn {
  enum Kind { Launch, HostRead, HostWrite } kind = Launch;
  /// The kernel, or the memory that the host accesses.
  std::string name;
  /// Arguments of the kernel, and the names of their memory. Another argument
  /// uses the memory of its own name.
  std::vector<std::pair<std::string, std::string>> bound;
  /// The source text: "b(x=inbox)".
  std::string text;
};

/// The launches of every rank, in turn.
struct Sequence {
  std::vector<Turn> turns;
  /// True: the turns run in any order, the same on all ranks. False: they
  /// repeat in this order.
  bool isAnyOrder = false;
};

/// Reads "a, read x, b(x=inbox)" or "any of a, b".
llvm::Expected<Sequence> parseSequence(llvm::StringRef text);

/// The kernels that `sequence` launches, each once, in the order of `module`.
/// Fails if one is missing.
FailureOr<std::vector<KernelOp>> findKernels(ModuleOp module,
                                             const Sequence &sequence);

/// Adds a kernel to `module` whose launches run `turns`, a subset of the turns
/// of `sequence`, in order and repeatedly. The kernels in `module` must have
/// numbers of ranks, and memory instead of channels. `blocks` is the number of
/// blocks per rank; 0: each kernel's own. An access of the host is a
/// `memref.copy` whose location has the turn's text as its name.
FailureOr<KernelOp> joinKernels(ModuleOp module, const Sequence &sequence,
                                llvm::ArrayRef<Turn> turns, int64_t blocks);

/// The number of launches of `sequence`, in any order, after which each
/// kernel's behavior repeats. Null: a kernel is not known to repeat.
FailureOr<std::optional<int64_t>>
countLaunches(ModuleOp module, const Sequence &sequence, int64_t blocks);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_SEQUENCE_H
