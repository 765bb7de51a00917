//===- Reductions.cpp - all_reduce, reduce_scatter in permutations --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum is made in rank order by the owner of its part, and rounded once to the
// type that travels: the bits are those of a two-shot.
//
// Where outputs are no windows, sums go through slots and are copied out of
// them, which takes as long as a third of an exchange if links wait for it. So
// they may go in steps, too, and be copied late: what came in one step in the
// next, and what came in the last step of a round with the first sends of the
// round after it. The owner stores its sums in its own output in the first
// step, and sends them from there in the others.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/permutation/Exchange.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

static Tiles sumTile(CollectiveBuilder &b, const Channels &channels, Value slot,
                     Value tile) {
  return b.foldRanks(
      [&](Value peer) { return b.receive(channels, slot, peer, tile); });
}

//===----------------------------------------------------------------------===//
// Sums through a channel
//===----------------------------------------------------------------------===//

/// Job that makes the sums of this rank's part.
static Job makeSums(CollectiveBuilder &b, const Channels &channels,
                    Value round) {
  Job made;
  made.part = b.rank();
  made.round = round;
  made.loads = b.ranks();
  made.load = [&b, channels](Value slot, Value tile) {
    return b.round(sumTile(b, channels, slot, tile));
  };
  return made;
}

static void gatherRound(Exchange &e, const Channels &channels,
                        const Channels &sums, Value round) {
  CollectiveBuilder &b = e.b;
  Job send = makeSums(b, channels, round);
  send.store = [&](Value slot, Value tile, ValueRange made) {
    b.send(sums, made, slot, {}, tile);
  };
  e.forTiles(send);
  b.endRound(sums);
  b.loop(b.numRanks(), [&](Value owner) {
    e.forTiles(Job{owner, round,
                   [&](Value slot, Value tile) {
                     return b.receive(sums, slot, owner, tile);
                   },
                   [&](Value, Value tile, ValueRange sum) {
                     b.consume(b.extend(sum), {}, tile);
                   }});
  });
  e.endRound();
}

/// Whether outputs hold what travels, so that it can be sent from there.
static bool outputsHoldSums(const CollectiveInfo &problem) {
  return !problem.consume &&
         llvm::all_of(llvm::zip_equal(problem.outputs, problem.wires),
                      [&](auto pair) {
                        auto &[output, wire] = pair;
                        return output.elementType ==
                               problem.getPartialType(wire.elementType);
                      });
}

static bool gathersLate(Exchange &e) {
  const CollectiveInfo &problem = e.b.problem();
  return problem.lateCopies && problem.ranks > 1 && e.b.canReuseSlots() &&
         usesSteps(problem, e.assignment.pieces) && outputsHoldSums(problem);
}

/// Copies what came at a step.
static Job makeCopy(CollectiveBuilder &b, const Channels &sums, Value round,
                    Value source) {
  return {source, round,
          [&b, sums, source](Value slot, Value tile) {
            return b.makeOutputs(b.extend(b.receive(sums, slot, source, tile)),
                                 {}, tile);
          },
          [&b](Value, Value tile, ValueRange outputs) {
            b.storeOutputs(outputs, {}, tile);
          }};
}

/// Makes the sums, and sends them to the first peer.
static Job makeFirstSends(CollectiveBuilder &b, const Channels &channels,
                          const Channels &sums, Value round, Value peer) {
  Job made = makeSums(b, channels, round);
  made.store = [&b, sums, peer](Value slot, Value tile, ValueRange made) {
    b.send(sums, made, slot, peer, tile);
    b.consume(b.extend(made), {}, tile);
  };
  return made;
}

/// Sends the others the sums that were made.
static Job makeResends(CollectiveBuilder &b, const Channels &sums, Value round,
                       Value peer) {
  Job made = readOutputs(b, b.rank(), round);
  made.store = [&b, sums, peer](Value slot, Value tile, ValueRange made) {
    b.send(sums, made, slot, peer, tile);
  };
  return made;
}

/// Data of the last step stays where it arrived.
static void gatherInSteps(Exchange &e, const Channels &channels,
                          const Channels &sums, Value round) {
  CollectiveBuilder &b = e.b;
  e.forSteps(
      [&](const Step &step) {
        if (step.isFirst)
          return e.forTiles(
              makeFirstSends(b, channels, sums, round, step.peer));
        Value source = e.sourceAt(b.sub(step.distance, b.constant(1)));
        e.forTiles({makeResends(b, sums, round, step.peer),
                    makeCopy(b, sums, round, source)});
      },
      [&] { e.endStep(sums); });
  e.endStep(sums);
}

/// All that a launch does with `rounds` rounds. A round's sends come behind the
/// barrier that ends the last step of the one before, its sums behind the one
/// that ends its sends, with which the last copies are made.
static void gatherLate(Exchange &e, const Channels &channels) {
  CollectiveBuilder &b = e.b;
  Channels sums = e.channels(ChannelPattern::Pairwise, Payload::Partial);
  int64_t last = e.assignment.rounds - 1;
  auto lastCopy = [&](Value round) {
    return makeCopy(b, sums, round, e.sourceAt(b.constant(b.ranks() - 1)));
  };
  scatterRound(e, channels, b.constant(0));
  auto next = [&](Value round) {
    gatherInSteps(e, channels, sums, round);
    scatterRound(e, channels, b.add(round, b.constant(1)), lastCopy(round));
    e.endRound();
  };
  if (last > 0)
    b.loop(b.constant(last), next);
  gatherInSteps(e, channels, sums, b.constant(last));
  e.forTiles(lastCopy(b.constant(last)));
}

//===----------------------------------------------------------------------===//
// The collectives
//===----------------------------------------------------------------------===//

void permutation::expandAllReduce(CollectiveBuilder &b) {
  Exchange e(b, assignTiles(b, b.ranks(), b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  bool direct = b.problem().storesToPeers();
  if (!direct && gathersLate(e))
    return gatherLate(e, channels);
  Channels sums;
  if (!direct)
    sums = e.channels(ChannelPattern::Multicast, Payload::Partial);
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    if (!direct)
      return gatherRound(e, channels, sums, round);
    Job get = makeSums(b, channels, round);
    get.load = [&b, sum = get.load](Value slot, Value tile) {
      return b.makeOutputs(b.extend(sum(slot, tile)), {}, tile);
    };
    gatherDirectly(e, get);
  });
}

void permutation::expandReduceScatter(CollectiveBuilder &b) {
  Exchange e(b, assignTiles(b, 1, b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    Job made{b.rank(), round,
             [&](Value slot, Value tile) {
               return sumTile(b, channels, slot, tile);
             },
             [&](Value, Value tile, ValueRange sum) {
               b.consume(Tiles(sum), {}, tile);
             }};
    made.loads = b.ranks();
    e.forTiles(made);
    e.endRound();
  });
}
