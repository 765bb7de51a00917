//===- Copies.cpp - all_gather and all_to_all in permutations -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Straight into the outputs of others where these are windows; else through a
// channel, from whose slots the receiver copies. It may do that late: what came
// in one step in the next, while links are busy, and what came in the last step
// of a round in the first of the next.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/permutation/Exchange.h"

#include "lowering/analysis/Accesses.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

//===----------------------------------------------------------------------===//
// Straight into outputs
//===----------------------------------------------------------------------===//

/// Job that writes a part of the own inputs into the outputs of `peer`.
static Job makeWrite(CollectiveBuilder &b, Value peer) {
  Value own = b.rank();
  return {peer, b.constant(0),
          [&b, own, peer](Value, Value tile) {
            return b.makeOutputs(b.produce(peer, tile), own, tile);
          },
          [&b, own, peer](Value, Value tile, ValueRange outputs) {
            b.storeOutputs(outputs, own, tile, peer);
          }};
}

static void copyDirectly(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  Exchange e(b, assignOneRound(b));
  Value zero = b.constant(0), own = b.rank();
  auto writeParts = [&](ValueRange peers) {
    e.forTiles(llvm::map_to_vector(
        peers, [&](Value peer) { return makeWrite(b, peer); }));
  };
  bool inSteps = usesSteps(problem, 1);
  bool holds = problem.inputParts() == 1 && inSteps && e.holdsTiles();
  Job get{zero, zero,
          [&](Value, Value tile) {
            return b.makeOutputs(b.produce({}, tile), own, tile);
          },
          nullptr};
  SmallVector<HeldTile> held;
  if (holds) // Nobody writes inputs: loads need not wait for the barrier.
    held = e.hold(get);
  b.barrier();
  if (holds)
    storeHeld(e, held, own);
  else if (problem.inputParts() == 1 && !inSteps)
    e.forTiles(writeToAll(b, get, own));
  else if (problem.inputParts() == 1)
    e.forSteps(
        [&](const Step &step) { e.forTiles(writeInStep(b, get, own, step)); });
  else if (!inSteps && b.ranks() <= mostTogether)
    writeParts(everyone(b));
  else
    e.forSteps(
        [&](const Step &step) {
          writeParts(step.isFirst ? withOwn(b, step.peer) : Tiles{step.peer});
        },
        inSteps);
  b.barrier();
}

//===----------------------------------------------------------------------===//
// Through a channel
//===----------------------------------------------------------------------===//

/// Job that copies what `source` sent.
static Job makeCopy(CollectiveBuilder &b, const Channels &channels, Value round,
                    Value source) {
  return {source, round,
          [&b, channels, source](Value slot, Value tile) {
            return b.makeOutputs(b.receive(channels, slot, source, tile),
                                 source, tile);
          },
          [&b, source](Value, Value tile, ValueRange outputs) {
            b.storeOutputs(outputs, source, tile);
          }};
}

static void copyAtOnce(Exchange &e, const Channels &channels) {
  CollectiveBuilder &b = e.b;
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    b.loop(b.numRanks(), [&](Value source) {
      e.forTiles(makeCopy(b, channels, round, source));
    });
    e.endRound();
  });
}

/// Job that gives this rank what it has for itself.
static Job makeOwnCopy(CollectiveBuilder &b, Value round) {
  Value own = b.rank(), part = b.problem().inputParts() > 1 ? own : Value();
  return {own, round,
          [&b, own, part](Value, Value tile) {
            return b.makeOutputs(b.produce(part, tile), own, tile);
          },
          [&b, own](Value, Value tile, ValueRange outputs) {
            b.storeOutputs(outputs, own, tile);
          }};
}

/// A round: what came at the last step is left where it is. `beside`: what else
/// is done at the first.
static void sendInSteps(Exchange &e, const Channels &channels, Value round,
                        ArrayRef<Job> beside = {}) {
  CollectiveBuilder &b = e.b;
  e.forSteps(
      [&](const Step &step) {
        SmallVector<Job> jobs = e.makeSends(channels, round, step.peer);
        if (step.isFirst) {
          jobs.push_back(makeOwnCopy(b, round));
          llvm::append_range(jobs, beside);
        } else {
          Value source = e.sourceAt(b.sub(step.distance, b.constant(1)));
          jobs.push_back(makeCopy(b, channels, round, source));
        }
        e.forTiles(jobs);
      },
      [&] { e.endStep(channels); });
  e.endStep(channels);
}

static void copyLate(Exchange &e, const Channels &channels) {
  CollectiveBuilder &b = e.b;
  int64_t last = e.assignment.rounds - 1;
  auto lastCopy = [&](Value round) {
    return makeCopy(b, channels, round, e.sourceAt(b.constant(b.ranks() - 1)));
  };
  sendInSteps(e, channels, b.constant(0));
  if (last > 0)
    b.loop(b.constant(last), [&](Value round) {
      sendInSteps(e, channels, b.add(round, b.constant(1)), lastCopy(round));
    });
  e.forTiles(lastCopy(b.constant(last)));
}

/// Whether an output is memory that an input is.
static bool sharesMemory(const CollectiveInfo &problem) {
  return llvm::any_of(problem.outputs, [&](const TileArray &output) {
    return llvm::any_of(problem.inputs, [&](const TileArray &input) {
      return getMemoryRoot(output.memory).value ==
             getMemoryRoot(input.memory).value;
    });
  });
}

/// Of two ranks one would send to where the other still copies from. What is
/// copied late into an input might have to be sent yet.
static bool copiesLate(Exchange &e) {
  const CollectiveInfo &problem = e.b.problem();
  return problem.lateCopies && problem.ranks > 2 && e.b.canReuseSlots() &&
         usesSteps(problem, 1) && !sharesMemory(problem);
}

static void copyThroughChannel(CollectiveBuilder &b) {
  Exchange e(b, assignTiles(b, 1, b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  if (copiesLate(e))
    copyLate(e, channels);
  else
    copyAtOnce(e, channels);
}

void permutation::expandCopies(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  if (problem.storesToPeers() && !sharesMemory(problem))
    copyDirectly(b);
  else
    copyThroughChannel(b);
}
