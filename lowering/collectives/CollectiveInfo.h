//===- CollectiveInfo.h - A collective in numbers ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective op in numbers: its sources and destinations, and how the arrays
// are cut into parts (one per rank) and tiles (the unit of sending). Algorithms
// see a collective only through this struct.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H
#define COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H

#include "dialect/Collectives.h"
#include "dialect/Comms.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

/// An operand of a collective, divided into tiles.
struct TileArray {
  /// A window or a memref of static shape.
  Value memory;
  Type elementType;
  /// Elements per tile; with row tiling, this array's row length.
  int64_t tileLength = 0;
  /// Elements per part.
  int64_t partElements = 0;
  /// This array's single row is used with every row of the others.
  bool shared = false;
};

/// A tile as it is sent: `length` elements of `elementType`.
struct WireTile {
  Type elementType;
  int64_t length = 0;
};

/// A collective, ready to be expanded.
struct CollectiveInfo {
  Operation *op = nullptr;
  const CollectiveKind *kind = nullptr;
  Value team;
  /// Number of ranks of the team.
  int64_t ranks = 0;
  /// The root, or the source of `OneToOne`, as a rank of the team.
  int64_t root = 0;
  /// The kernel's argument that holds the root, of type index
  /// (`comms.run_time_root`); null: it is `root` in every launch.
  Value rootArgument;
  /// The destination of `OneToOne`.
  int64_t dest = 0;
  std::optional<ReductionKind> reduction;
  /// Regions around the exchange; null: none.
  Region *produce = nullptr;
  Region *consume = nullptr;
  SmallVector<TileArray> inputs, outputs, args;
  SmallVector<WireTile> wires;

  /// `rowsVary`: number of rows for each pair of ranks, as arrays of i32 with
  /// one element per rank.
  Value sendRows, recvRows;

  /// Flat: no region depends on a whole row, so that the arrays can be cut into
  /// tiles of any size. Otherwise a tile is a row.
  bool flat = false;
  /// Elements of one part of the first input.
  int64_t partElements = 0;
  /// Elements of one tile of the first wire.
  int64_t tileSize = 0;
  /// Number of tiles of a part.
  int64_t tiles = 0;
  /// The kernel's `comms.run_time_extent`: `partElements` and `tiles` are
  /// maxima, and the number of elements of a part is given at launch
  /// (comms.extent) as a multiple of this number. 0: they are exact.
  int64_t extentStep = 0;
  bool isSized() const { return extentStep > 0; }
  /// Reason why algorithms that need the number of tiles do not support the
  /// problem.
  static constexpr const char *whyNotSized =
      "its number of elements is known at launch only; use one_shot or "
      "two_shot";
  /// Number of whole tiles: all, or all but the last.
  int64_t countWholeTiles() const {
    return flat ? partElements / tileSize : tiles;
  }
  /// Whether all tiles are whole for any extent.
  bool hasWholeTiles() const {
    return isSized() ? !flat || extentStep % tileSize == 0
                     : countWholeTiles() == tiles;
  }

  /// Costs of the protocol under consideration: microseconds until a peer sees
  /// data, and bytes in memory per byte of data. Set before `Algorithm::cost`.
  double hop = 1.0;
  double overhead = 1.0;
  /// Costs of the machine: microseconds of a barrier of all ranks, and bytes
  /// per microsecond that leave a rank when all ranks send to all at once, and
  /// when each sends to one other. Measured in one direction of NVLink on a
  /// current host, as seen by a peer's kernel.
  double barrier = 1.0;
  double rate = 300e3, rateInStep = 353e3;

  /// Maximum bytes of slots per rank for one round of an algorithm with rounds:
  /// the kernel's `comms.round_bytes`.
  int64_t roundBytes = int64_t(128) << 20;
  /// Bytes from one rank to another from which on a step of a permutation
  /// exchange ends in a barrier: `comms.step_bytes`.
  int64_t stepBytes = int64_t(2) << 20;
  /// Whether that barrier orders memory even if nothing requires it
  /// (`comms.step_fence`). If not, ranks do not wait for their stores.
  int64_t stepFence = 0;
  /// Whether data received in one step is copied out of its slots in the next
  /// step, while links are busy (`comms.late_copies`).
  int64_t lateCopies = 1;
  /// Maximum number of tiles that a block keeps in registers over all steps
  /// that send them (`comms.held_tiles`), instead of loading them in each step.
  int64_t heldTiles = 0;
  /// Number of tiles that a block loads before it stores the first of them, if
  /// tiles may have any size (`comms.batch_loads`); 0: chosen for the target.
  int64_t batchLoads = 0;

  /// For a problem without arrays, used for estimates only: whether its outputs
  /// are windows.
  bool windows = false;

  /// Microseconds to send `copies` times one part over a link.
  double transfer(double copies, bool inStep = false) const;
  /// Largest fraction of a part, from 0 to 1, that one rank gets when tiles are
  /// distributed over ranks: more than 1 / ranks if there are few tiles.
  double largestShare() const;
  /// Bytes of one part as it is sent; of everything that a rank receives.
  double partBytes() const;
  double allBytes() const;
  /// Whether every rank can write the outputs of the others and knows the
  /// values: outputs are windows, and no argument of the receiver is used.
  bool storesToPeers() const;
  /// Type in which partial results for wire tiles of `elementType` are sent.
  /// Floats: their own type. Narrower integers: the accumulator's type if all
  /// of its bits are visible (to a region, an average, or a wider output), else
  /// their own type, because integer arithmetic wraps and the low bits depend
  /// only on low bits.
  Type getPartialType(Type elementType) const;
  /// Number of parts of an input, or of an output.
  int64_t inputParts() const;
  int64_t outputParts() const;
};

/// A number of a problem that a kernel can set by its integer attribute
/// `comms.<name>`.
struct KernelNumber {
  llvm::StringRef name;
  int64_t CollectiveInfo::*field;
  int64_t least;
};

/// All of them.
ArrayRef<KernelNumber> getKernelNumbers();

/// Analyzes a collective. Emits an error at the op if no algorithm can carry it
/// out. Tiles are chosen later; see `chooseTiles`.
FailureOr<CollectiveInfo> readCollective(Operation *op);

/// Cuts flat parts into at least `pieces` tiles with at least 16 elements, or
/// into tiles of `tileSize` elements if that is not 0. Tile sizes are multiples
/// of `step`, a power of two. Row tiling is not changed.
void chooseTiles(CollectiveInfo &problem, int64_t pieces, int64_t tileSize,
                 int64_t step = 1);

/// Number of elements of a flat tile in which each of `threads` GPU threads has
/// one vector: 16 bytes of the narrowest element type that is moved. Smaller if
/// there would be fewer than `pieces` tiles, so that every rank has work.
int64_t getTileSizeFor(const CollectiveInfo &problem, int64_t threads,
                       int64_t pieces);

/// Type in which values of `elementType` are accumulated: f32 for narrower
/// floats, i32 for i8, else the type itself.
Type getAccumulatorType(Type elementType);

/// Whether values of type `from` can be converted to `to` without a region.
bool canConvert(Type from, Type to);

/// Converts `value` (a tile) to elements of type `to`; requires `canConvert`.
Value convertTile(OpBuilder &builder, Location loc, Value value, Type to);

/// Whether `kind` can combine elements of `elementType`.
bool hasCombiner(ReductionKind kind, Type elementType);

/// Combines two tiles of the accumulator type by `kind`; requires
/// `hasCombiner`.
Value combineTiles(OpBuilder &builder, Location loc, ReductionKind kind,
                   Value lhs, Value rhs);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H
