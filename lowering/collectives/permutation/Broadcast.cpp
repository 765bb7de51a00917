//===- Broadcast.cpp - broadcast in permutations --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small array goes whole to everybody. Of a larger one the root sends each
// rank a piece, which hands it on to all; of a large one in chunks, so that the
// root sends while the others hand on.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/permutation/Exchange.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

/// Bytes up to which the root writes the whole to everybody.
static constexpr double wholeBytes = 256 << 10;
/// Bytes from which on a broadcast is a pipeline, and those of its chunks.
static constexpr double pipelineBytes = 12 << 20, chunkBytes = 4 << 20;
static constexpr int64_t mostChunks = 12;

bool permutation::isSmallBroadcast(const CollectiveInfo &problem) {
  return problem.ranks <= 2 || problem.partBytes() <= wholeBytes;
}

bool permutation::isPipelined(const CollectiveInfo &problem) {
  return !isSmallBroadcast(problem) && problem.partBytes() >= pipelineBytes;
}

int64_t permutation::countChunks(const CollectiveInfo &problem) {
  return std::min(int64_t(problem.partBytes() / chunkBytes), mostChunks);
}

/// Job that reads what the root has.
static Job makeRead(CollectiveBuilder &b, Value part, Value round) {
  return {part, round,
          [&b](Value, Value tile) {
            return b.makeOutputs(b.produce({}, tile), {}, tile);
          },
          nullptr};
}

/// The root writes everything to all.
static void broadcastWhole(CollectiveBuilder &b) {
  Exchange e(b, assignOneRound(b));
  b.barrier();
  Value zero = b.constant(0);
  b.ifThen(b.isRank(b.root()),
           [&] { e.forTiles(writeToAll(b, makeRead(b, zero, zero), {})); });
  b.barrier();
}

/// The root sends each rank a piece, which hands it on to all.
static void broadcastPieces(CollectiveBuilder &b) {
  Exchange e(b, assignTiles(b, b.ranks(), b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  e.forRounds([&](Value round) {
    // One sender: there is nothing to keep in step.
    b.ifThen(b.isRank(b.root()),
             [&] { sendToAll(e, channels, round, /*inSteps=*/false); });
    b.endRound(channels);
    gatherDirectly(e, {b.rank(), round,
                       [&](Value slot, Value tile) {
                         return b.makeOutputs(
                             b.receive(channels, slot, b.root(), tile), {},
                             tile);
                       },
                       nullptr});
  });
}

namespace {
/// The array is cut into a piece for each rank but the root, and each piece
/// into chunks. In round c the root writes chunk c of each piece to its owner,
/// at step k to the k-th, while the owners hand chunk c - 1 on to one another:
/// the root sends the array once, and so does, nearly, everybody else.
///
/// Owners are numbered 0 … M - 1 by their distance from the root. At step k
/// owner i hears from the root if k = i, and else from owner 2i - k (mod M):
/// for odd M that is one sender for each receiver and one receiver for each
/// sender. For even M owner i hears from owner i - 1 - k; then two senders meet
/// at one receiver at times. Steps have no barrier between them: a round is
/// short, and blocks that wait for its end leave the links to others.
class Pipeline {
public:
  Pipeline(CollectiveBuilder &b, TileAssignment assignment)
      : b(b), e(b, assignment), owners(b.ranks() - 1),
        number(b.mod(
            b.sub(b.add(b.rank(), b.constant(2 * b.ranks() - 1)), b.root()),
            b.numRanks())) {}

  void run();

private:
  Value modulo(Value value) { return b.mod(value, b.constant(owners)); }
  /// Returns the rank of owner number `number`.
  Value rankOf(Value number) {
    return b.mod(b.add(b.add(b.root(), number), b.constant(1)), b.numRanks());
  }
  /// Whom this owner writes to at step `step`; itself: nobody.
  Value receiver(Value step) {
    Value sum = b.add(number, step);
    if (owners % 2)
      return modulo(b.mul(sum, b.constant((owners + 1) / 2)));
    return modulo(b.add(sum, b.constant(1)));
  }
  void sendPiece(Value round, Value step);
  void forward(Value round, Value step);

  CollectiveBuilder &b;
  Exchange e;
  int64_t owners;
  /// This rank's number; `owners` at the root.
  Value number;
};
} // namespace

void Pipeline::sendPiece(Value round, Value step) {
  e.forTiles(writeInStep(b, makeRead(b, step, round), {},
                         {rankOf(step), step, /*isFirst=*/true}));
}

void Pipeline::forward(Value round, Value step) {
  Value to = receiver(step);
  Value isOther = b.either(b.less(to, number), b.less(number, to));
  b.ifThen(isOther, [&] {
    e.forTiles(
        writeInStep(b, readOutputs(b, number, round), {}, {rankOf(to), to}));
  });
}

void Pipeline::run() {
  Value one = b.constant(1), rounds = b.constant(e.assignment.rounds);
  Value isOwner = b.less(number, b.constant(owners));
  auto forSteps = [&](Value condition, function_ref<void(Value)> body) {
    b.ifThen(condition, [&] { b.loop(b.constant(owners), body); });
  };
  b.barrier();
  b.loop(b.add(rounds, one), [&](Value round) {
    forSteps(b.both(b.isRank(b.root()), b.less(round, rounds)),
             [&](Value step) { sendPiece(round, step); });
    forSteps(b.both(isOwner, b.less(b.constant(0), round)),
             [&](Value step) { forward(b.sub(round, one), step); });
    b.barrier();
  });
}

static void broadcastInPipeline(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  TileAssignment assignment;
  assignment.pieces = problem.ranks - 1;
  assignment.tiles = llvm::divideCeil(problem.tiles, assignment.pieces);
  assignment.rounds = std::min(countChunks(problem), assignment.tiles);
  assignment.slots = llvm::divideCeil(assignment.tiles, assignment.rounds);
  Pipeline(b, assignment).run();
}

void permutation::expandBroadcast(CollectiveBuilder &b) {
  if (isSmallBroadcast(b.problem()))
    broadcastWhole(b);
  else if (isPipelined(b.problem()))
    broadcastInPipeline(b);
  else
    broadcastPieces(b);
}
