//===- CollectiveBuilder.h - The vocabulary of algorithms -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vocabulary of algorithms. An algorithm defines which rank sends which
// tile to which peer, and the order in which results are combined. The builder
// handles loops over blocks, tails of arrays, fused regions and element types.
//
// A *part* is a rank's share of an array that has one share per rank; a null
// part means the only one. Tiles of a part are numbered from 0; tile t belongs
// to block t mod num_blocks on every rank, so that block b exchanges only with
// block b. A wire may consist of several tiles (`Tiles`) that are sent
// together: one for each result of `produce`.
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

/// Tiles that are sent together.
using Tiles = SmallVector<Value>;

/// One channel for each tile of the wire.
using Channels = SmallVector<Value>;

/// Contents of a channel: tiles as produced, or partial and final results.
enum class Payload { Wire, Partial };

class CollectiveBuilder {
public:
  /// Inserts at the position of `builder`. Channels use `protocol` and are
  /// numbered from `nextChannel`, which is incremented.
  CollectiveBuilder(OpBuilder &builder, const CollectiveInfo &problem,
                    StringRef protocol, int64_t &nextChannel);

  const CollectiveInfo &problem() const { return theProblem; }
  OpBuilder &builder() { return b; }
  Location loc() const { return theProblem.op->getLoc(); }

  //===--------------------------------------------------------------------===//
  // Numbers: all are non-negative values of type index
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
  /// Comparisons return an i1.
  Value equal(Value lhs, Value rhs);
  Value less(Value lhs, Value rhs);
  Value both(Value lhs, Value rhs);
  Value either(Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);

  //===--------------------------------------------------------------------===//
  // Ranks and blocks
  //===--------------------------------------------------------------------===//

  /// Ranks of the team.
  int64_t ranks() const { return theProblem.ranks; }
  Value numRanks() { return constant(theProblem.ranks); }
  /// This rank's index in the team.
  Value rank() const { return myRank; }
  Value root() {
    return theProblem.rootArgument ? theProblem.rootArgument
                                   : constant(theProblem.root);
  }
  /// The rank `distance` after this one, modulo the number of ranks.
  Value rankAfter(Value distance);
  Value isRank(Value rank) { return equal(myRank, rank); }
  /// Tiles of a part: a constant, or given at launch.
  Value tiles() const { return numTiles; }
  /// This block's number and the number of blocks, within the current role.
  Value block() const { return myBlock; }
  Value blocks() const { return numBlocks; }
  /// The number of blocks, if known.
  std::optional<int64_t> constantBlocks() const;

  //===--------------------------------------------------------------------===//
  // Control flow
  //===--------------------------------------------------------------------===//

  /// Calls `body`, in which all tiles are whole. The caller guarantees that.
  void withWholeTiles(function_ref<void()> body) {
    llvm::SaveAndRestore keep(tilesAreWhole, true);
    body();
  }

  /// Emits `body` for i = first, first + step, … below `end`, with loop-carried
  /// values; returns their final values.
  Tiles loop(Value first, Value end, Value step, ValueRange carried,
             function_ref<Tiles(Value i, ValueRange carried)> body);
  /// Emits `body` for i = 0 … end - 1.
  void loop(Value end, function_ref<void(Value i)> body);
  /// Emits `body` for each tile of a part that this block owns.
  void forOwnTiles(function_ref<void(Value tile)> body);
  /// Emits `body` for every rank, starting after this one and ending with it,
  /// so that no two ranks address the same peer at the same time.
  void forRanksRotated(function_ref<void(Value rank)> body);
  void ifThen(Value condition, function_ref<void()> body);
  Tiles ifElse(Value condition, function_ref<Tiles()> yes,
               function_ref<Tiles()> no);

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// Loads tile `tile` of part `part` of every input and returns the tiles to
  /// send.
  Tiles produce(Value part, Value tile);
  /// Computes outputs from the received tiles (accumulators, if the collective
  /// reduces) and stores them as tile `tile` of part `part`.
  void consume(ValueRange arrived, Value part, Value tile);
  /// The two halves of `consume`: computing the outputs, and storing them, to
  /// the outputs of rank `peer` if it is not null (see `storesToPeers`).
  Tiles makeOutputs(ValueRange arrived, Value part, Value tile);
  void storeOutputs(ValueRange outputs, Value part, Value tile,
                    Value peer = {});
  /// Loads the present contents of this rank's outputs.
  Tiles loadOutputs(Value part, Value tile);
  /// Converts wire tiles or partial results to accumulators.
  Tiles extend(ValueRange tiles);
  /// Combines accumulators.
  Tiles combine(ValueRange lhs, ValueRange rhs);
  /// Applies the final step after all ranks are combined: the division of
  /// `avg`.
  Tiles finish(ValueRange accumulators);
  /// Converts accumulators to the type in which they are sent
  /// (`Payload::Partial`).
  Tiles round(ValueRange accumulators);
  /// Combines `get(0)`, `get(1)`, …, in that order, and finishes.
  Tiles foldRanks(function_ref<Tiles(Value rank)> get);
  /// Tiles of zeros, shaped like `payload`, for branches without a tile.
  Tiles zeros(Payload payload);
  Tiles zeroAccumulators();
  /// Loads or stores one tile at an offset in elements; `valid` may be null.
  Value load(const TileArray &array, Value offset, Value valid);
  void store(Value tile, const TileArray &array, Value offset, Value valid);

  //===--------------------------------------------------------------------===//
  // Channels
  //===--------------------------------------------------------------------===//

  /// Makes a channel with `slots` slots for each tile of the wire. Within a
  /// launch a slot carries at most one tile for each source and destination; if
  /// `reused`, one per round, which requires `canReuseSlots`.
  Channels channels(ChannelPattern pattern, int64_t slots,
                    Payload payload = Payload::Wire, bool reused = false);
  /// Whether slots can carry tiles in several rounds of a launch.
  bool canReuseSlots() const;
  /// Sends to `peer`, or to all ranks if it is null. `tile` is the tile's
  /// number in its part, which determines how much of the last tile exists.
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
  /// The launch's extent (null: the problem's own), and the number of tiles of
  /// a part.
  Value extent, numTiles;
  /// The arrival token of `beginCollective`.
  Value arrived;
  /// Inside `withWholeTiles`.
  bool tilesAreWhole = false;
};

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_COLLECTIVEBUILDER_H
