//===- Sequence.h - Launches of several kernels in turn ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that share windows and signals become one kernel whose launches do
// what the launches of the kernels do in turn, so that the checker follows them
// as it follows one kernel. The host's accesses between launches are launches,
// too: the end of a launch comes before the next one on its rank, and says
// nothing of other ranks.
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

/// Unit attribute of a joined kernel: its launches end with the first round of
/// the turns, so that nothing has to repeat.
inline constexpr const char kOneRoundAttr[] = "comms.one_round";

/// One launch, or what the host does in its place.
struct Turn {
  enum Kind { Launch, HostRead, HostWrite } kind = Launch;
  /// The kernel, or the memory that the host accesses.
  std::string name;
  /// Arguments of the kernel, and the memory that they are. Others are the
  /// memory of their own name.
  std::vector<std::pair<std::string, std::string>> bound;
  /// As it was written: "b(x=inbox)".
  std::string text;
};

/// The launches of every rank, in turn.
struct Sequence {
  std::vector<Turn> turns;
  /// The turns come in any order, which is the same on all ranks; else in this
  /// order, again and again.
  bool isAnyOrder = false;
};

/// Reads "a, read x, b(x=inbox)" or "any of a, b".
llvm::Expected<Sequence> parseSequence(llvm::StringRef text);

/// The kernels that `sequence` launches, each once, in the order of `module`.
/// Fails if one is missing.
FailureOr<std::vector<KernelOp>> findKernels(ModuleOp module,
                                             const Sequence &sequence);

/// An access of the host is a `memref.copy` whose location has the turn's text
/// as its name. Adds a kernel to `module` whose launches do what `turns` do,
/// one after the other and from the first again; they are some of the turns of
/// `sequence`. `module` has the kernels, over memory instead of channels, with
/// their numbers of ranks. `blocks` is the number of blocks of each rank; 0:
/// each kernel's own.
FailureOr<KernelOp> joinKernels(ModuleOp module, const Sequence &sequence,
                                llvm::ArrayRef<Turn> turns, int64_t blocks);

/// How many launches of `sequence` in any order show what one launch of it does
/// to another: each kernel is followed as often as it takes to repeat. Null: a
/// kernel is not known to repeat.
FailureOr<std::optional<int64_t>>
countLaunches(ModuleOp module, const Sequence &sequence, int64_t blocks);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_SEQUENCE_H
