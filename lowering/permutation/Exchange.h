//===- Exchange.h - Parts, rounds and steps of a permutation ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the exchanges in permutations (algorithm/Permutation.cpp) are written
// in. A part is a run of neighbouring tiles. Its tiles are dealt to rounds, and
// those of a round to slots: slot s of a part belongs to block s mod num_blocks
// on every rank. In each round there is a step for each peer.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PERMUTATION_EXCHANGE_H
#define COMMSIR_LOWERING_PERMUTATION_EXCHANGE_H

#include "lowering/CollectiveBuilder.h"

#include <functional>

namespace mlir::comms::permutation {

/// How the tiles of parts are dealt to rounds and slots.
struct Deal {
  /// Parts that one array is cut into: more than one where it has none by
  /// itself (`Movement::Same`).
  int64_t pieces = 1;
  /// Tiles of a part or piece; slots of a round; rounds.
  int64_t tiles = 0, slots = 0, rounds = 1;
};

/// Deals `tiles` tiles of each part to as few rounds as the slots of `rows`
/// sources allow.
Deal makeDeal(CollectiveBuilder &b, int64_t pieces, int64_t rows);
/// Everything in one round.
Deal makeWhole(CollectiveBuilder &b);

/// What is done with a tile in each slot of a part.
struct Job {
  Value part, round;
  std::function<Tiles(Value slot, Value tile)> load;
  std::function<void(Value slot, Value tile, ValueRange loaded)> store;
};

/// A tile that this block has in registers.
struct Held {
  Value slot, tile;
  Tiles tiles;
};

/// At step `distance` a rank turns to `peer`, so many ranks after it.
struct Step {
  Value peer, distance;
  bool isFirst = false;
};

class Exchange {
public:
  Exchange(CollectiveBuilder &b, Deal deal) : b(b), deal(deal) {}

  /// `body` for this block's slots of a round, with the tile of part `part` in
  /// each: its number in the array or, where arrays have parts, in the part.
  void forTiles(Value part, Value round,
                function_ref<void(Value slot, Value tile)> body);
  /// Several jobs in each slot: all load before the first stores, so that they
  /// wait together; but one after the other where tiles may not exist.
  void forTiles(ArrayRef<Job> jobs);
  /// Whether all that this block has of a part stays in registers over the
  /// steps: it is little, and as much for each block.
  bool holdsTiles() const;
  /// `load` for each tile that is held.
  SmallVector<Held> hold(Value part, Value round,
                         function_ref<Tiles(Value slot, Value tile)> load);
  /// `body` for each step, `between` between two. A rank that is alone takes
  /// one, with itself.
  void forSteps(function_ref<void(const Step &)> body,
                function_ref<void()> between);
  /// The same, with barriers between steps; without them where not `inStep`.
  void forSteps(function_ref<void(const Step &)> body, bool inStep = true);
  /// `body` for each round.
  void forRounds(function_ref<void(Value round)> body);
  /// Ends a round: others may write what this rank has read in it.
  void endRound() {
    if (deal.rounds > 1)
      b.barrier();
  }
  /// Between the sends of a step and their receives, and between what was
  /// received before and what is sent to its slots after. Lowered, the two
  /// barriers are one.
  void endStep(const Channels &channels) {
    b.endRound(channels);
    endRound();
  }
  Channels channels(ChannelPattern pattern, Payload payload) {
    return b.channels(pattern, deal.slots, payload, deal.rounds > 1);
  }
  /// Jobs that send `peers`, ranks, what they are to get.
  SmallVector<Job> makeSends(const Channels &channels, Value round,
                             ValueRange peers);
  /// Who turned to this rank at that step.
  Value sourceAt(Value distance);

  CollectiveBuilder &b;
  Deal deal;

private:
  /// The tile in a slot, and whether it exists (null: it does).
  std::pair<Value, Value> tileOf(Value part, Value round, Value slot);
  void forSlots(function_ref<void(Value slot)> body);
};

/// Ranks whose tiles are loaded together: they stay in registers.
inline constexpr int64_t mostTogether = 8;

/// All ranks, beginning behind this one.
Tiles everyone(CollectiveBuilder &b);
/// `peer` and this rank, which are one where it is alone.
Tiles withOwn(CollectiveBuilder &b, Value peer);

/// Whether steps are worth their barriers: by the bytes that one rank sends
/// another.
bool goesInSteps(const Problem &problem, double parts);

/// Sends all ranks what they are to get, this one included: what it keeps takes
/// the same way, so that a sum is one loop over slots. `beside`: what else is
/// done in the first step, of those that go in steps.
void sendToAll(Exchange &e, const Channels &channels, Value round, bool inSteps,
               ArrayRef<Job> beside = {});
/// Brings what all ranks have of a part to its owner.
void scatterRound(Exchange &e, const Channels &channels, Value round,
                  ArrayRef<Job> beside = {});

/// Into the own outputs and those of `peer`.
void storeToBoth(CollectiveBuilder &b, ValueRange outputs, Value part,
                 Value tile, Value peer);
/// What is held, into the outputs of all, in steps.
void storeHeld(Exchange &e, ArrayRef<Held> held, Value part);
/// Writes the own part into the outputs of all: `get` gives a tile of it, as it
/// travels.
void gatherDirectly(Exchange &e, Value round,
                    function_ref<Tiles(Value slot, Value tile)> get);
/// A part that is not worth a barrier a step: a tile is loaded once and written
/// to all.
void writeToAll(Exchange &e, Value part);

// The programs, by collective.
void expandAllReduce(CollectiveBuilder &b);
void expandReduceScatter(CollectiveBuilder &b);
/// all_gather and all_to_all.
void expandCopies(CollectiveBuilder &b);
void expandBroadcast(CollectiveBuilder &b);

/// Bytes up to which the root of a broadcast writes the whole to everybody; and
/// from which on a broadcast is a pipeline, of how many chunks.
bool isSmallBroadcast(const Problem &problem);
bool isPipelined(const Problem &problem);
int64_t countChunks(const Problem &problem);

} // namespace mlir::comms::permutation

#endif // COMMSIR_LOWERING_PERMUTATION_EXCHANGE_H
