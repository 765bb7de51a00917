//===- CollectiveBuilder.h - What algorithms write with ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The words that algorithms are written in. An algorithm says who sends which
// tile to whom and in which order results are combined; loops over blocks,
// tails of arrays, fused regions and element types are the builder's business.
//
// Conventions. A *part* is a rank's share of an array that holds one for each
// rank; a null part means the only one. Tiles of a part are numbered from 0;
// tile t belongs to block t mod num_blocks on every rank, so block b exchanges
// with block b only. A wire may be several tiles (`Tiles`) that travel
// together: one for each value that `produce` yields.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEBUILDER_H
#define COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEBUILDER_H

#include "lowering/collectives/CollectiveInfo.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SaveAndRestore.h"

namespace mlir::comms {

/// Tiles that travel together.
using Tiles = SmallVector<Value>;

/// One channel for each tile of the wire.
using Channels = SmallVector<Value>;

/// What a channel carries: tiles as produced, or partial and final results.
enum class Payload { Wire, Partial };

class CollectiveBuilder {
public:
  /// Writes at the place of `builder`. Channels use `protocol` and are numbered
  /// from `nextChannel`, which is advanced.
  CollectiveBuilder(OpBuilder &builder, const CollectiveInfo &problem,
                    StringRef protocol, int64_t &nextChannel);

  const CollectiveInfo &problem() const { return theProblem; }
  OpBuilder &builder() { return b; }
  Location loc() const { return theProblem.op->getLoc(); }

  //===--------------------------------------------------------------------===//
  // Numbers: all of type index and not negative
  //===--------------------------------------------------------------------===//

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  /// `rhs` must not exceed `lhs`.
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value div(Value lhs, Value rhs);
  /// Rounded up.
  Value divCeil(Value lhs, Value rhs);
  Value mod(Value lhs, Value rhs);
  Value min(Value lhs, Value rhs);
  /// Comparisons give an i1.
  Value equal(Value lhs, Value rhs);
  Value less(Value lhs, Value rhs);
  Value both(Value lhs, Value rhs);
  Value either(Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);

  //===--------------------------------------------------------------------===//
  // Who
  //===--------------------------------------------------------------------===//

  /// Ranks of the team.
  int64_t ranks() const { return theProblem.ranks; }
  Value numRanks() { return constant(theProblem.ranks); }
  /// This rank's number in the team.
  Value rank() const { return myRank; }
  Value root() { return constant(theProblem.root); }
  /// The rank `distance` after this one, around the end.
  Value rankAfter(Value distance);
  Value isRank(Value rank) { return equal(myRank, rank); }
  /// Tiles of a part: a constant, or what the launch gives.
  Value tiles() const { return numTiles; }
  /// This block's number and the number of blocks, within the role that runs.
  Value block() const { return myBlock; }
  Value blocks() const { return numBlocks; }
  /// The number of blocks, where it is known.
  std::optional<int64_t> constantBlocks() const;

  //===--------------------------------------------------------------------===//
  // Control
  //===--------------------------------------------------------------------===//

  /// Calls `body`, all of whose tiles are whole: the caller sees to that.
  void withWholeTiles(function_ref<void()> body) {
    llvm::SaveAndRestore keep(tilesAreWhole, true);
    body();
  }

  /// `body` for i = first, first + step, … below `end`, with values that are
  /// carried along; returns the last ones.
  Tiles loop(Value first, Value end, Value step, ValueRange carried,
             function_ref<Tiles(Value i, ValueRange carried)> body);
  /// `body` for i = 0 … end - 1.
  void loop(Value end, function_ref<void(Value i)> body);
  /// `body` for each tile of a part that this block owns.
  void forOwnTiles(function_ref<void(Value tile)> body);
  /// `body` for every rank, this one included, starting after this one, so that
  /// no two ranks address the same peer at a time.
  void forRanksRotated(function_ref<void(Value rank)> body);
  void ifThen(Value condition, function_ref<void()> body);
  Tiles ifElse(Value condition, function_ref<Tiles()> yes,
               function_ref<Tiles()> no);

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// Loads tile `tile` of part `part` of every input and gives what travels.
  Tiles produce(Value part, Value tile);
  /// Makes outputs of what arrived (accumulators, where the collective reduces)
  /// and stores them as tile `tile` of part `part`.
  void consume(ValueRange arrived, Value part, Value tile);
  /// The two halves of `consume`: what the outputs get, and storing it, in the
  /// outputs of rank `peer` where that is not null (see `storesToPeers`).
  Tiles makeOutputs(ValueRange arrived, Value part, Value tile);
  void storeOutputs(ValueRange outputs, Value part, Value tile,
                    Value peer = {});
  /// What this rank's outputs hold.
  Tiles loadOutputs(Value part, Value tile);
  /// Wire tiles or partial results as accumulators.
  Tiles extend(ValueRange tiles);
  /// Combines accumulators.
  Tiles combine(ValueRange lhs, ValueRange rhs);
  /// What remains to be done when all ranks are combined: the division of
  /// `avg`.
  Tiles finish(ValueRange accumulators);
  /// Accumulators as they travel (`Payload::Partial`).
  Tiles round(ValueRange accumulators);
  /// Combines `get(0)`, `get(1)`, …, in that order, and finishes.
  Tiles foldRanks(function_ref<Tiles(Value rank)> get);
  /// Tiles of zeros, shaped like `payload`; for branches in which no tile is.
  Tiles zeros(Payload payload);
  Tiles zeroAccumulators();
  /// Reads or writes one tile at an offset in elements; `valid` may be null.
  Value load(const TileArray &array, Value offset, Value valid);
  void store(Value tile, const TileArray &array, Value offset, Value valid);

  //===--------------------------------------------------------------------===//
  // Channels
  //===--------------------------------------------------------------------===//

  /// Makes a channel for each tile of the wire, with `slots` slots. Within a
  /// launch a slot carries at most one tile for each source and destination;
  /// for each round if they are `reused`, which `canReuseSlots` has to allow.
  Channels channels(ChannelPattern pattern, int64_t slots,
                    Payload payload = Payload::Wire, bool reused = false);
  /// Whether slots can carry tiles in several rounds of a launch.
  bool canReuseSlots() const;
  /// Sends to `peer`, or, when null, to all. `tile` is the tile's number in its
  /// part (it says how much of the last one exists).
  void send(const Channels &channels, ValueRange tiles, Value slot, Value peer,
            Value tile);
  Tiles receive(const Channels &channels, Value slot, Value peer, Value tile);
  /// Separates the sends of a round from its receives. Every rank must reach
  /// it.
  void endRound(const Channels &channels);
  /// Wrap a collective in which some rank sends but receives nothing. They keep
  /// that rank from running ahead of those that still receive: every rank
  /// arrives at a barrier at the beginning and waits for it at the end, when
  /// all have usually arrived. If the protocol's rounds are barriers anyway,
  /// the collective ends in one instead.
  void beginCollective();
  void endCollective();
  /// A barrier of block b of all ranks. Accesses before it happen before
  /// accesses after it, unless the order is relaxed.
  void barrier(MemoryOrder order = MemoryOrder::AcqRel);

private:
  Value elementOffset(const TileArray &array, Value part, Value tile);
  Value valid(Value tile);
  Tiles inlineRegion(Region &region, ValueRange arguments);
  RankedTensorType wireType(size_t index, Type elementType);
  Tiles zeros(function_ref<Type(Type)> type);

  OpBuilder &b;
  const CollectiveInfo &theProblem;
  std::string protocol;
  int64_t &nextChannel;
  Value myRank, myBlock, numBlocks;
  /// The launch's extent (null: the problem's own), and tiles of a part.
  Value extent, numTiles;
  /// The arrival of `beginCollective`.
  Value arrived;
  /// Within `withWholeTiles`.
  bool tilesAreWhole = false;
};

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEBUILDER_H
