//===- Collective.h - One collective on arrays of a group -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a description of a collective to a launch: writes the kernel's source,
// has it compiled once for each distinct description, copies what is not of a
// size that has a kernel, launches.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_COLLECTIVE_H
#define COMMSIR_RUNTIME_GROUP_COLLECTIVE_H

#include "runtime/group/Group.h"

#include "llvm/ADT/SmallVector.h"

namespace commsir::group {

/// Array of a call: contiguous, in memory of the group's kind of device.
struct Array {
  void *data = nullptr;
  int64_t elements = 0;
};

/// A plain collective over flat arrays. Shapes as in the Spec: all_gather's
/// output has ranks * input elements, reduce_scatter's input ranks * output.
struct CollectiveCall {
  /// Mnemonic without the dialect: "all_reduce", "all_gather", "broadcast", …
  std::string op;
  /// "sum", "max", …; empty for copies.
  std::string reduction;
  /// As MLIR writes it.
  std::string elementType;
  /// What the caller takes the elements for ("ui8", "complex<f32>"), where
  /// `elementType` says only how they are moved or calculated with. Ranks whose
  /// names differ disagree. Empty: `elementType`.
  std::string typeName;
  int64_t root = 0;
  /// send and recv: the other rank.
  int64_t peer = 0;
  Array input, output;
  /// Empty: chosen.
  std::string algorithm, protocol;
  /// all_to_all_v: elements to and from each rank; they lie one after the other
  /// in input and output, those of rank 0 first.
  std::vector<int64_t> sendCounts, recvCounts;
  /// Where each part of the input, or of the output, lies when it is by itself,
  /// in place of `input` or `output`: one a rank, or one where the array is one
  /// part. A part may have less than `partElements`, which is the most of any
  /// and the same on all ranks, also on those whose arrays are whole; 0: all
  /// arrays are whole.
  std::vector<Array> inputParts, outputParts;
  int64_t partElements = 0;
};

/// The same, but for all_to_all_v and arrays in parts, with texts that are the
/// caller's during the call, as C has them; null is empty.
struct CollectiveTexts {
  const char *op = nullptr, *reduction = nullptr, *elementType = nullptr;
  const char *typeName = nullptr, *algorithm = nullptr, *protocol = nullptr;
  int64_t root = 0, peer = 0;
  Array input, output;
};

/// A collective with arithmetic: `input` is the collective's array of `rows`
/// rows, `arguments` the operands of the region beside it, `outputs` what it
/// yields. `consume` is MLIR text: the region's arguments and body, as between
/// `consume` and the closing brace, over tiles of `columns` elements.
/// `produce`, likewise, makes what travels, of a row of `input` and one of each
/// of `sources`; empty: `input` travels.
struct FusedCall {
  std::string op, reduction, elementType;
  int64_t rows = 0, columns = 0;
  Array input;
  struct Operand {
    Array array;
    std::string elementType;
    /// One row for all (a weight) or a row each (a residual).
    bool perRow = true;
    int64_t columns = 0;
  };
  llvm::SmallVector<Operand, 4> sources, arguments, outputs;
  /// The caller's, during the call.
  llvm::StringRef produce, consume;
};

struct PlainPlan;
struct FusedPlan;

/// A plain collective that is launched many times, on other arrays of the same
/// sizes. Lives at most as long as its Collectives, and keeps what the last
/// launch has found out.
class PreparedCollective {
public:
  /// The arrays of `call` give the sizes; their addresses are not used.
  explicit PreparedCollective(CollectiveCall call) : call(std::move(call)) {}
  const CollectiveCall &getCall() const { return call; }

private:
  friend class Collectives;
  CollectiveCall call;
  /// Valid while the plans are those of that generation.
  PlainPlan *plan = nullptr;
  uint64_t generation = 0;
};

/// The same for a collective with arithmetic.
class PreparedFused {
public:
  /// Copies the texts of `call`; the addresses of its arrays are not used.
  explicit PreparedFused(const FusedCall &call);
  PreparedFused(const PreparedFused &) = delete;
  PreparedFused &operator=(const PreparedFused &) = delete;
  /// The input, sources, arguments and outputs.
  size_t countArrays() const {
    return 1 + call.sources.size() + call.arguments.size() +
           call.outputs.size();
  }

private:
  friend class Collectives;
  const std::string produce, consume;
  FusedCall call;
  /// Valid while the fused plans are those of that generation.
  FusedPlan *plan = nullptr;
  uint64_t generation = 0;
};

/// Where the arrays of the calls were.
struct StagingCounts {
  Count inPlace, staged;
};

/// How many kernels are kept for one set of ranks; the rest are discarded, the
/// one used longest ago first.
struct CollectiveLimits {
  size_t kernels = 256;
  /// GPU: sizes of one operation and type that get kernels of their own at
  /// once. Further ones share kernels of rounded sizes, as on the CPU, until
  /// they are used a few times.
  unsigned ownSizes = 64;
};

/// The collectives of one group. Remembers calls by description, so that a
/// repeated call is a lookup and a launch. In a stream that is being captured
/// nothing is compiled: a call has to be made before, eagerly.
/// `unsupportedReason`, `check` and `counts` are for any thread, the rest for
/// one at a time (Group.h).
class Collectives {
public:
  explicit Collectives(Group &group, CollectiveLimits limits = {});
  ~Collectives();
  llvm::Error run(const CollectiveCall &call, void *stream);
  llvm::Error run(const FusedCall &call, void *stream);
  /// Launches a call that was made so before, at little more cost than looking
  /// it up. None: nothing was done, and it has to be `run`.
  std::optional<llvm::Error> repeat(const CollectiveTexts &call, void *stream);
  /// Runs a prepared call on the arrays at `input` and `output`, which have the
  /// sizes it was prepared with.
  llvm::Error launch(PreparedCollective &prepared, void *input, void *output,
                     void *stream);
  /// The same with arithmetic: `arrays` are the input, the sources, the
  /// arguments and the outputs, `prepared.countArrays()` in all.
  llvm::Error launch(PreparedFused &prepared, llvm::ArrayRef<void *> arrays,
                     void *stream);
  /// Success: `call` has the sizes, root and types of a collective that CommsIR
  /// compiles. Makes no kernel, and does not look at the arrays' memory.
  llvm::Error check(const CollectiveCall &call) const;
  /// The same with arithmetic, whose regions are not parsed.
  llvm::Error check(const FusedCall &call) const;
  /// `made` is `call`, and was `run`: `repeat` finds it from now on.
  void remember(const CollectiveTexts &call, const CollectiveCall &made);
  /// Whether `call` is one that CommsIR compiles; else the reason, for the
  /// delegation's counter.
  std::optional<std::string>
  unsupportedReason(const CollectiveCall &call) const;
  StagingCounts counts() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_COLLECTIVE_H
