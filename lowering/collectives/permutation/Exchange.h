//===- Exchange.h - Parts, rounds and steps of a permutation ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the exchanges in permutations (algorithm/Permutation.cpp) are written
// in. A part is a run of neighboring tiles. Its tiles are dealt to rounds, and
// those of a round to slots: slot s of a part belongs to block s mod num_blocks
// on every rank. In each round there is a step for each peer.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H
#define COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H

#include "lowering/collectives/CollectiveBuilder.h"

#include <functional>

namespace mlir::comms::permutation {

/// How the tiles of parts are dealt to rounds and slots.
struct TileAssignment {
  /// Parts that one array is cut into: more than one where it has none by
  /// itself (`Movement::Same`).
  int64_t pieces = 1;
  /// Tiles of a part or piece; slots of a round; rounds.
  int64_t tiles = 0, slots = 0, rounds = 1;
};

/// Deals `tiles` tiles of each part to as few rounds as the slots of `rows`
/// sources allow.
TileAssignment assignTiles(CollectiveBuilder &b, int64_t pieces, int64_t rows);
/// Everything in one round.
TileAssignment assignOneRound(CollectiveBuilder &b);

/// What is done with the tile in each slot of a part, in a round.
struct Job {
  Value part, round;
  std::function<Tiles(Value slot, Value tile)> load;
  std::function<void(Value slot, Value tile, ValueRange loaded)> store;
  /// Tiles that `load` has on their way at once.
  int64_t loads = 1;
};

/// A tile that this block has in registers.
struct HeldTile {
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
  Exchange(CollectiveBuilder &b, TileAssignment assignment)
      : b(b), assignment(assignment) {}

  /// The jobs of each of this block's slots in a round that has a tile, the one
  /// of the job's part: its number in the array or, where arrays have parts, in
  /// the part. All load before the first stores, so that they wait together,
  /// those of several slots if they are few; but one after the other where
  /// tiles may not exist.
  void forTiles(ArrayRef<Job> jobs);
  /// Whether all that this block has of a part stays in registers over the
  /// steps: it is little, and as much for each block.
  bool holdsTiles() const;
  /// What `get` loads for each tile that is held.
  SmallVector<HeldTile> hold(const Job &get);
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
    if (assignment.rounds > 1)
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
    return b.channels(pattern, assignment.slots, payload,
                      assignment.rounds > 1);
  }
  /// Jobs that send `peers`, ranks, what they are to get.
  SmallVector<Job> makeSends(const Channels &channels, Value round,
                             ValueRange peers);
  /// Who turned to this rank at that step.
  Value sourceAt(Value distance);

  CollectiveBuilder &b;
  TileAssignment assignment;

private:
  /// The number of the first tile of a round of a part.
  Value firstTile(Value part, Value round);
  /// The tile in a slot.
  Value tileOf(Value part, Value round, Value slot) {
    return b.add(firstTile(part, round), slot);
  }
  /// Whether rounds have more slots than a part has tiles.
  bool roundsExceed() const {
    return assignment.slots * assignment.rounds > assignment.tiles;
  }
  /// Whether all parts together have more than `tiles` tiles.
  bool partsExceed(int64_t tiles) const {
    return assignment.pieces * assignment.tiles > tiles;
  }
  /// Whether there are slots without a tile, and without a whole one.
  bool hasEmptySlots() const {
    return roundsExceed() || partsExceed(b.problem().tiles);
  }
  bool hasPartSlots() const {
    return roundsExceed() || partsExceed(b.problem().countWholeTiles());
  }
  /// Whether the tile in a slot exists; null: it does.
  Value exists(Value part, Value round, Value slot);
  /// How many slots, from the first on, have whole tiles for all jobs; may be
  /// negative.
  Value countWhole(ArrayRef<Job> jobs);

  /// Slots whose jobs are done together.
  int64_t batchOf(ArrayRef<Job> jobs) const;
  /// Does the jobs of as many slots at once. Gives the slot of this block from
  /// which on they have yet to be done; null: none.
  Value forBatches(ArrayRef<Job> jobs, int64_t batch);
  /// Does the jobs of slots that have tiles.
  void runJobs(ArrayRef<Job> jobs, ValueRange slots);
  void forSlots(Value first, function_ref<void(Value slot)> body);
};

/// Ranks whose tiles are loaded together: they stay in registers.
inline constexpr int64_t mostTogether = 8;

/// All ranks, beginning behind this one.
Tiles everyone(CollectiveBuilder &b);
/// `peer` and this rank, which are one where it is alone.
Tiles withOwn(CollectiveBuilder &b, Value peer);

/// Whether steps are worth their barriers: by the bytes that one rank sends
/// another.
bool usesSteps(const CollectiveInfo &problem, double parts);

/// Sends all ranks what they are to get, this one included: what it keeps takes
/// the same way, so that a sum is one loop over slots. `beside`: what else is
/// done in the first step, of those that go in steps.
void sendToAll(Exchange &e, const Channels &channels, Value round, bool inSteps,
               ArrayRef<Job> beside = {});
/// Brings what all ranks have of a part to its owner.
void scatterRound(Exchange &e, const Channels &channels, Value round,
                  ArrayRef<Job> beside = {});

/// Job that reads what this rank has in its outputs.
Job readOutputs(CollectiveBuilder &b, Value part, Value round);
/// The job that writes what `get` loads, made for outputs, into part `part` of
/// those of the step's peer, and in the first step of this rank.
Job writeInStep(CollectiveBuilder &b, Job get, Value part, const Step &step);
/// Into those of all: a part that is not worth a barrier a step.
Job writeToAll(CollectiveBuilder &b, Job get, Value part);
/// What is held, into the outputs of all, in steps.
void storeHeld(Exchange &e, ArrayRef<HeldTile> held, Value part);
/// Writes the own part into the outputs of all: `get` loads it, as it travels.
void gatherDirectly(Exchange &e, const Job &get);

// The programs, by collective.
void expandAllReduce(CollectiveBuilder &b);
void expandReduceScatter(CollectiveBuilder &b);
/// all_gather and all_to_all.
void expandCopies(CollectiveBuilder &b);
void expandBroadcast(CollectiveBuilder &b);

/// Bytes up to which the root of a broadcast writes the whole to everybody; and
/// from which on a broadcast is a pipeline, of how many chunks.
bool isSmallBroadcast(const CollectiveInfo &problem);
bool isPipelined(const CollectiveInfo &problem);
int64_t countChunks(const CollectiveInfo &problem);

} // namespace mlir::comms::permutation

#endif // COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H
