//===- CollectiveInfo.h - What a collective asks for ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective op, read into numbers: who has what, who wants what, and how the
// arrays are cut into parts (one a rank) and tiles (what travels at a time).
// Algorithms see a collective through this alone.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H
#define COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H

#include "dialect/Collectives.h"
#include "dialect/Comms.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

/// An operand of a collective, as tiles.
struct TileArray {
  /// A window or a memref of static shape.
  Value memory;
  Type elementType;
  /// Elements of one tile; in row tiling, the length of this array's rows.
  int64_t tileLength = 0;
  /// Elements of one part.
  int64_t partElements = 0;
  /// The one row of this array goes with every row of the others.
  bool shared = false;
};

/// A tile as it travels: `length` elements of `elementType`.
struct WireTile {
  Type elementType;
  int64_t length = 0;
};

/// One collective, ready to be expanded.
struct CollectiveInfo {
  Operation *op = nullptr;
  const CollectiveKind *kind = nullptr;
  Value team;
  /// Ranks of the team.
  int64_t ranks = 0;
  /// The root; of `OneToOne` the source. A rank of the team.
  int64_t root = 0;
  /// Of `OneToOne`, the destination.
  int64_t dest = 0;
  std::optional<ReductionKind> reduction;
  /// Regions around the exchange; null: none.
  Region *produce = nullptr;
  Region *consume = nullptr;
  SmallVector<TileArray> inputs, outputs, args;
  SmallVector<WireTile> wires;

  /// Rows of the inputs that each go to one pair of ranks at most (`rowsVary`);
  /// their numbers, arrays of i32 with one element a rank.
  Value sendRows, recvRows;

  /// Flat: no region looks at a row as a whole, so the arrays are cut into
  /// tiles of any size. Otherwise a tile is a row.
  bool flat = false;
  /// Elements of one part of the first input.
  int64_t partElements = 0;
  /// Elements of a tile of the first wire.
  int64_t tileSize = 0;
  /// Tiles of a part.
  int64_t tiles = 0;
  /// The kernel's `comms.run_time_extent`: `partElements` and `tiles` are the
  /// most, and the elements of a part are known at launch (comms.extent), a
  /// multiple of this number. 0: they are what the arrays have.
  int64_t extentStep = 0;
  bool isSized() const { return extentStep > 0; }
  /// Why algorithms that need the number of tiles cannot carry it out.
  static constexpr const char *whyNotSized =
      "its number of elements is known at launch only; use one_shot or "
      "two_shot";
  /// Those that are whole: all, or all but the last.
  int64_t countWholeTiles() const {
    return flat ? partElements / tileSize : tiles;
  }
  /// Whether all tiles are whole, whatever the extent is.
  bool hasWholeTiles() const {
    return isSized() ? !flat || extentStep % tileSize == 0
                     : countWholeTiles() == tiles;
  }

  /// What the protocol in question costs: microseconds until a peer sees data,
  /// and bytes in memory for each byte of data. Set before `Algorithm::cost`.
  double hop = 1.0;
  double overhead = 1.0;
  /// What the machine is like: microseconds of a barrier of all ranks, and
  /// bytes that leave a rank in one where all send to all at once, and where
  /// each sends to one other. One direction of NVLink on a current host, as a
  /// peer's kernel sees it.
  double barrier = 1.0;
  double rate = 300e3, rateInStep = 353e3;

  /// Bytes of slots that one rank may hold for one round of an algorithm that
  /// goes in rounds: the kernel's `comms.round_bytes`.
  int64_t roundBytes = int64_t(128) << 20;
  /// Bytes that one rank sends another from which on a step of an exchange in
  /// permutations ends in a barrier: `comms.step_bytes`.
  int64_t stepBytes = int64_t(2) << 20;
  /// Whether that barrier orders memory, where nothing asks for it
  /// (`comms.step_fence`): if not, ranks meet without waiting for their stores.
  int64_t stepFence = 0;
  /// Whether what came in one step is copied out of its slots in the next,
  /// while links are busy (`comms.late_copies`).
  int64_t lateCopies = 1;
  /// Tiles that a block may keep in registers over all steps that send them
  /// (`comms.held_tiles`), rather than load them in each.
  int64_t heldTiles = 0;
  /// Tiles that a block loads before it stores the first of them, where tiles
  /// are of any size (`comms.batch_loads`); 0: as many as suit the target.
  int64_t batchLoads = 0;

  /// Of a problem without arrays, which is to be estimated alone: whether its
  /// outputs are windows.
  bool windows = false;

  /// Microseconds that `copies` times the bytes of one part take on a link.
  double transfer(double copies, bool inStep = false) const;
  /// The largest share of a part, from 0 to 1, that one rank has when tiles are
  /// dealt to ranks: more than 1 / ranks when there are few.
  double largestShare() const;
  /// Bytes of one part as it travels; of all that a rank gets.
  double partBytes() const;
  double allBytes() const;
  /// Whether every rank can write the outputs of the others, and knows what to
  /// write: they are windows, and no argument of the receiver takes part.
  bool storesToPeers() const;
  /// The type in which partial results of wire tiles of `elementType` travel:
  /// their own for floats. The accumulator's for narrower integers where
  /// somebody sees all of its bits (a region, an average, a wider output);
  /// else their own, too: integer arithmetic wraps, so the low bits of a
  /// result are those of its narrowed parts.
  Type getPartialType(Type elementType) const;
  /// Parts that an input, or an output, holds.
  int64_t inputParts() const;
  int64_t outputParts() const;
};

/// A number of a problem that a kernel may set: its integer attribute
/// `comms.<name>`.
struct KernelNumber {
  llvm::StringRef name;
  int64_t CollectiveInfo::*field;
  int64_t least;
};

/// All of them.
ArrayRef<KernelNumber> getKernelNumbers();

/// Reads a collective. Emits an error at the op when it cannot be carried out
/// by any algorithm. Tiles are not yet chosen: see `chooseTiles`.
FailureOr<CollectiveInfo> readCollective(Operation *op);

/// Cuts flat parts into at least `pieces` tiles of at least 16 elements; or
/// into tiles of `tileSize` elements when that is not 0. Tiles are multiples of
/// `step`, a power of two. Row tiling is left alone.
void chooseTiles(CollectiveInfo &problem, int64_t pieces, int64_t tileSize,
                 int64_t step = 1);

/// Elements of a flat tile of which each of `threads` threads of a GPU has one
/// vector: 16 bytes of the narrowest elements that are moved. Fewer where that
/// would leave less than `pieces` tiles, so that every rank has work.
int64_t getTileSizeFor(const CollectiveInfo &problem, int64_t threads,
                       int64_t pieces);

/// The type in which values of `elementType` are accumulated: f32 for narrower
/// floats, i32 for i8, else the type itself.
Type getAccumulatorType(Type elementType);

/// Whether values of type `from` become `to` without a region that says how.
bool canConvert(Type from, Type to);

/// `value` (a tile) with elements of type `to`; `canConvert` must hold.
Value convertTile(OpBuilder &builder, Location loc, Value value, Type to);

/// Whether `kind` combines elements of `elementType`.
bool hasCombiner(ReductionKind kind, Type elementType);

/// `kind` of two tiles of the accumulator type; `hasCombiner` must hold.
Value combineTiles(OpBuilder &builder, Location loc, ReductionKind kind,
                   Value lhs, Value rhs);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEINFO_H
