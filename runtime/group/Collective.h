//===- Collective.h - One collective on arrays of a group -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a description of a collective into a launch: writes the kernel's
// source, compiles it once per distinct description, copies arrays to sizes
// that have a kernel, and launches.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_COLLECTIVE_H
#define COMMSIR_RUNTIME_GROUP_COLLECTIVE_H

#include "runtime/group/Group.h"

#include "llvm/ADT/SmallVector.h"

#include <atomic>

namespace commsir::group {

/// An array of a call: contiguous, in memory of the group's device type.
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
  /// Element type in MLIR syntax.
  std::string elementType;
  /// The caller's name for the element type ("ui8", "complex<f32>") if
  /// `elementType` only describes how elements are moved or computed. Ranks
  /// whose names differ disagree. Empty: `elementType`.
  std::string typeName;
  int64_t root = 0;
  /// send and recv: the other rank.
  int64_t peer = 0;
  Array input, output;
  /// Empty: chosen automatically.
  std::string algorithm, protocol;
  /// all_to_all_v: number of elements to and from each rank. Input and output
  /// hold the parts one after the other, rank 0's first.
  std::vector<int64_t> sendCounts, recvCounts;
  /// Addresses of the separate parts of the input or output, used in place of
  /// `input` or `output`: one per rank, or one if the array has a single part.
  /// A part may hold fewer than `partElements` elements. `partElements` is the
  /// maximum over all parts and equal on all ranks, also on those with whole
  /// arrays; 0: all arrays are whole.
  std::vector<Array> inputParts, outputParts;
  int64_t partElements = 0;
};

/// A CollectiveCall for C, without all_to_all_v and separate parts. The caller
/// owns the texts, which must stay valid during the call; null means empty.
struct CollectiveTexts {
  const char *op = nullptr, *reduction = nullptr, *elementType = nullptr;
  const char *typeName = nullptr, *algorithm = nullptr, *protocol = nullptr;
  int64_t root = 0, peer = 0;
  Array input, output;
};

/// A collective fused with arithmetic. `input` is the array of the collective,
/// with `rows` rows. `arguments` are the further operands of the region,
/// `outputs` its results. `consume` is MLIR text: the region's arguments and
/// body, as between `consume` and the closing brace, over tiles of `columns`
/// elements. `produce`, in the same form, computes the data to send from one
/// row of `input` and one row of each of `sources`; empty: `input` is sent
/// unchanged.
struct FusedCall {
  std::string op, reduction, elementType;
  int64_t rows = 0, columns = 0;
  Array input;
  struct Operand {
    Array array;
    std::string elementType;
    /// False: one row is shared by all rows (a weight). True: one row each (a
    /// residual).
    bool perRow = true;
    int64_t columns = 0;
  };
  llvm::SmallVector<Operand, 4> sources, arguments, outputs;
  /// Owned by the caller; valid during the call.
  llvm::StringRef produce, consume;
};

struct PlainPlan;
struct FusedPlan;

/// A collective that is launched many times on other arrays of the same sizes.
/// Must not outlive its Collectives. Keeps what the last launch looked up.
class PreparedCollective {
public:
  /// Takes the sizes of the arrays of `call`; ignores their addresses.
  explicit PreparedCollective(CollectiveCall call) : call(std::move(call)) {}

private:
  friend class Collectives;
  CollectiveCall call;
  /// Valid while the generation of the plans is unchanged.
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
  /// Rows of the pieces that the call goes in (0: it goes in one), for that age
  /// of the plans; such a piece, and the last one where it has fewer rows.
  int64_t pieceRows = 0;
  uint64_t piecesAge = 0;
  std::unique_ptr<PreparedFused> pieces[2];
};

/// Counts the calls' arrays by how they were used.
struct StagingCounts {
  Count inPlace, staged;
};

/// Maximum number of kernels kept per set of ranks. The least recently used one
/// is discarded first.
struct CollectiveLimits {
  size_t kernels = 256;
  /// GPU: number of sizes per operation and type that get their own kernel at
  /// once. Further sizes share kernels of rounded sizes, as on the CPU, until
  /// they have been used a few times.
  unsigned ownSizes = 64;
};

/// While it is above 0, calls wait for their kernels in place of going on
/// without them; for warm-ups. Equal on all ranks at each call.
extern std::atomic<int> compilesAtOnce;

/// The collectives of one group. Caches calls by description, so that a
/// repeated call is a lookup and a launch. Nothing is compiled while a stream
/// is captured: the call must have been made eagerly before.
/// `unsupportedReason`, `check` and `counts` are thread-safe; all other
/// functions are called by one thread at a time (Group.h).
class Collectives {
public:
  explicit Collectives(Group &group, CollectiveLimits limits = {});
  ~Collectives();
  llvm::Error run(const CollectiveCall &call, void *stream);
  llvm::Error run(const FusedCall &call, void *stream);
  /// Fails with Disagree and the texts of two ranks unless all ranks pass the
  /// same `text`, which names a call that they are about to make. Collective.
  /// Does nothing while `stream` is captured.
  llvm::Error compare(llvm::StringRef text, void *stream);
  /// Launches a call that was made before in the same form, at little more than
  /// the cost of the lookup. Returns none if nothing was done; the caller must
  /// then `run` it.
  std::optional<llvm::Error> repeat(const CollectiveTexts &call, void *stream);
  /// Runs a prepared call on the arrays at `input` and `output`, which must
  /// have the sizes it was prepared with.
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
  /// Returns none if CommsIR compiles `call`, else the reason, for the
  /// delegation counter.
  std::optional<std::string>
  unsupportedReason(const CollectiveCall &call) const;
  StagingCounts counts() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_COLLECTIVE_H
