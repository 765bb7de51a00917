//===- Exchange.h - Parts, rounds and steps of a permutation ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Building blocks of the permutation exchanges (algorithm/Permutation.cpp). A
// part is a run of neighboring tiles. Its tiles are assigned to rounds, and
// those of a round to slots: slot s of a part belongs to block s mod num_blocks
// on every rank. Each round has one step per peer.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H
#define COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H

#include "lowering/collectives/CollectiveBuilder.h"

#include <functional>

namespace mlir::comms::permutation {

/// Assignment of the tiles of parts to rounds and slots.
struct TileAssignment {
  /// Number of parts that an array is cut into: more than one if the array has
  /// no parts of its own (`Movement::Same`).
  int64_t pieces = 1;
  /// Tiles per part or piece; slots per round; rounds.
  int64_t tiles = 0, slots = 0, rounds = 1;
};

/// Assigns `tiles` tiles of each part to as few rounds as the slots of `rows`
/// sources allow.
TileAssignment assignTiles(CollectiveBuilder &b, int64_t pieces, int64_t rows);
/// Assigns all tiles to one round.
TileAssignment assignOneRound(CollectiveBuilder &b);

/// Operations on the tile in each slot of a part, in a round.
struct Job {
  Value part, round;
  std::function<Tiles(Value slot, Value tile)> load;
  std::function<void(Value slot, Value tile, ValueRange loaded)> store;
  /// Number of tiles that `load` has in flight at once.
  int64_t loads = 1;
};

/// A tile that this block keeps in registers.
struct HeldTile {
  Value slot, tile;
  Tiles tiles;
};

/// At step `distance` a rank exchanges with `peer`, the rank `distance` after
/// it.
struct Step {
  Value peer, distance;
  bool isFirst = false;
};

class Exchange {
public:
  Exchange(CollectiveBuilder &b, TileAssignment assignment)
      : b(b), assignment(assignment) {}

  /// Runs the jobs for each of this block's slots in a round that has a tile,
  /// at the tile's number in the array or, if arrays have parts, in the job's
  /// part. All jobs load before the first one stores, so that their loads
  /// overlap, also across several slots if these are few. If tiles may not
  /// exist, jobs run one after the other.
  void forTiles(ArrayRef<Job> jobs);
  /// Whether all of this block's tiles of a part stay in registers over the
  /// steps: they are few, and equally many in each block.
  bool holdsTiles() const;
  /// Loads each held tile with `get`.
  SmallVector<HeldTile> hold(const Job &get);
  /// Emits `body` for each step, and `between` between steps. A single rank has
  /// one step, with itself.
  void forSteps(function_ref<void(const Step &)> body,
                function_ref<void()> between);
  /// Same, with barriers between steps, or without if not `inStep`.
  void forSteps(function_ref<void(const Step &)> body, bool inStep = true);
  /// `body` for each round.
  void forRounds(function_ref<void(Value round)> body);
  /// Ends a round: afterwards peers may overwrite what this rank has read in
  /// it.
  void endRound() {
    if (assignment.rounds > 1)
      b.barrier();
  }
  /// Separates the sends of a step from their receives, and the previous
  /// receives from later sends to the same slots. Lowering merges the two
  /// barriers into one.
  void endStep(const Channels &channels) {
    b.endRound(channels);
    endRound();
  }
  Channels channels(ChannelPattern pattern, Payload payload) {
    return b.channels(pattern, assignment.slots, payload,
                      assignment.rounds > 1);
  }
  /// Jobs that send each rank in `peers` its data.
  SmallVector<Job> makeSends(const Channels &channels, Value round,
                             ValueRange peers);
  /// The rank that sends to this rank at that step.
  Value sourceAt(Value distance);

  CollectiveBuilder &b;
  TileAssignment assignment;

private:
  /// The number of the first tile of a round of a part.
  Value firstTile(Value part, Value round);
  /// The number of the tile in a slot.
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
  /// Whether there are slots without a tile; without a whole tile.
  bool hasEmptySlots() const {
    return roundsExceed() || partsExceed(b.problem().tiles);
  }
  bool hasPartSlots() const {
    return roundsExceed() || partsExceed(b.problem().countWholeTiles());
  }
  /// Whether the tile in a slot exists; null: always.
  Value exists(Value part, Value round, Value slot);
  /// Number of slots, from the first on, with whole tiles for all jobs; may be
  /// negative.
  Value countWhole(ArrayRef<Job> jobs);

  /// Number of slots whose jobs run together.
  int64_t batchOf(ArrayRef<Job> jobs) const;
  /// Runs the jobs of `batch` slots at a time. Returns this block's first
  /// remaining slot; null: none.
  Value forBatches(ArrayRef<Job> jobs, int64_t batch);
  /// Runs the jobs of slots that have tiles.
  void runJobs(ArrayRef<Job> jobs, ValueRange slots);
  void forSlots(Value first, function_ref<void(Value slot)> body);
};

/// Maximum number of ranks whose tiles are loaded together; they stay in
/// registers.
inline constexpr int64_t mostTogether = 8;

/// All ranks, starting after this one.
Tiles everyone(CollectiveBuilder &b);
/// `peer` and this rank; one entry if this rank is alone.
Tiles withOwn(CollectiveBuilder &b, Value peer);

/// Whether steps justify their barriers, by the bytes that one rank sends
/// another.
bool usesSteps(const CollectiveInfo &problem, double parts);

/// Sends every rank its data, including this one. Own data takes the same path,
/// so that a sum is one loop over slots. `beside`: work to do in the first
/// step, if there are steps.
void sendToAll(Exchange &e, const Channels &channels, Value round, bool inSteps,
               ArrayRef<Job> beside = {});
/// Sends every rank's contribution to a part to the part's owner.
void scatterRound(Exchange &e, const Channels &channels, Value round,
                  ArrayRef<Job> beside = {});

/// The job that loads this rank's outputs.
Job readOutputs(CollectiveBuilder &b, Value part, Value round);
/// The job that writes the result of `get`, converted to outputs, to part
/// `part` of the outputs of the step's peer, and in the first step also of this
/// rank.
Job writeInStep(CollectiveBuilder &b, Job get, Value part, const Step &step);
/// Same, for the outputs of all ranks: for parts too small to justify a barrier
/// per step.
Job writeToAll(CollectiveBuilder &b, Job get, Value part);
/// Writes the held tiles to the outputs of all ranks, in steps.
void storeHeld(Exchange &e, ArrayRef<HeldTile> held, Value part);
/// Writes this rank's part to the outputs of all ranks. `get` loads it in the
/// type in which it is sent.
void gatherDirectly(Exchange &e, const Job &get);

// The programs, by collective.
void expandAllReduce(CollectiveBuilder &b);
void expandReduceScatter(CollectiveBuilder &b);
/// all_gather and all_to_all.
void expandCopies(CollectiveBuilder &b);
void expandBroadcast(CollectiveBuilder &b);

/// Whether the root of a broadcast writes everything to all ranks; and the size
/// from which on a broadcast is a pipeline, with its number of chunks.
bool isSmallBroadcast(const CollectiveInfo &problem);
bool isPipelined(const CollectiveInfo &problem);
int64_t countChunks(const CollectiveInfo &problem);

} // namespace mlir::comms::permutation

#endif // COMMSIR_LOWERING_COLLECTIVES_PERMUTATION_EXCHANGE_H
