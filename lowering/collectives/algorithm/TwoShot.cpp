//===- TwoShot.cpp - Reduce-scatter, then all-gather ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two steps: each tile has an owner, who gets what there is of it and sends the
// result to all. Moves 2 (N-1)/N of the array instead of N-1 times it. The
// owner reduces in rank order and rounds once to the type that travels, and
// uses what it sent: the same bits on every rank.
//
// Owner of tile t is (t + shift) mod N, where the shift is the same for N
// consecutive tiles from a multiple of N: they have N owners, so that t / N
// numbers an owner's tiles. The shift gives each block, which has every
// num_blocks-th tile, tiles of all owners: it is t / num_blocks where N divides
// the number of blocks, and otherwise t / N.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

static Value getTurn(CollectiveBuilder &b, Value tile) {
  return b.div(tile, b.numRanks());
}

/// Whether block b has tiles b, b + num_blocks, … of owners b, b + 1, ….
static bool areOwnersInTurn(CollectiveBuilder &b) {
  std::optional<int64_t> blocks = b.constantBlocks();
  return blocks && *blocks % b.ranks() == 0;
}

static Value getOwner(CollectiveBuilder &b, Value tile) {
  Value shift = areOwnersInTurn(b) ? b.div(tile, b.blocks()) : getTurn(b, tile);
  return b.mod(b.add(tile, shift), b.numRanks());
}

/// `body` for each tile of this block whose owner this rank is.
static void forOwnedTiles(CollectiveBuilder &b,
                          function_ref<void(Value)> body) {
  if (!areOwnersInTurn(b))
    return b.forOwnTiles([&](Value tile) {
      b.ifThen(b.isRank(getOwner(b, tile)), [&] { body(tile); });
    });
  Value behind = b.sub(b.numRanks(), b.mod(b.block(), b.numRanks()));
  Value turn = b.rankAfter(behind);
  b.loop(b.add(b.block(), b.mul(turn, b.blocks())), b.tiles(),
         b.mul(b.blocks(), b.numRanks()), {}, [&](Value tile, ValueRange) {
           body(tile);
           return Tiles();
         });
}

/// To the owners: from all ranks, or from the root.
static void sendToOwners(CollectiveBuilder &b, const Channels &channels) {
  b.forOwnTiles([&](Value tile) {
    b.send(channels, b.produce({}, tile), getTurn(b, tile), getOwner(b, tile),
           tile);
  });
}

/// Returns the owner's result for a tile: the reduction, or the root's tile.
static Tiles makeResult(CollectiveBuilder &b, const Channels &channels,
                        Value tile) {
  auto from = [&](Value peer) {
    return b.receive(channels, getTurn(b, tile), peer, tile);
  };
  return b.problem().kind->reduces ? b.round(b.foldRanks(from))
                                   : from(b.root());
}

static LogicalResult expand(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  bool reduces = problem.kind->reduces;
  int64_t turns = llvm::divideCeil(problem.tiles, problem.ranks);
  Channels toOwners = b.channels(ChannelPattern::Pairwise, turns);
  Channels toAll = b.channels(ChannelPattern::Multicast, turns,
                              reduces ? Payload::Partial : Payload::Wire);
  if (!reduces)
    b.beginCollective();
  if (reduces)
    sendToOwners(b, toOwners);
  else
    b.ifThen(b.isRank(b.root()), [&] { sendToOwners(b, toOwners); });
  b.endRound(toOwners);
  forOwnedTiles(b, [&](Value tile) {
    b.send(toAll, makeResult(b, toOwners, tile), getTurn(b, tile), {}, tile);
  });
  b.endRound(toAll);
  b.forOwnTiles([&](Value tile) {
    Tiles result = b.receive(toAll, getTurn(b, tile), getOwner(b, tile), tile);
    b.consume(reduces ? b.extend(result) : result, {}, tile);
  });
  if (!reduces)
    b.endCollective();
  return success();
}

static bool supports(const CollectiveInfo &problem, std::string &why) {
  bool fits = !problem.kind->rowsVary &&
              problem.kind->movement == Movement::Same &&
              (problem.kind->direction == Direction::RootToAll ||
               (problem.kind->direction == Direction::AllToAll &&
                problem.kind->reduces));
  if (!fits)
    why = "it implements all_reduce and broadcast, in which every rank gets "
          "the whole";
  return fits;
}

static double cost(const CollectiveInfo &problem) {
  return 2 * problem.hop + problem.transfer(2 * double(problem.ranks - 1) *
                                            problem.largestShare());
}

static int64_t pieces(const CollectiveInfo &problem) { return problem.ranks; }

static double waiting(const CollectiveInfo &problem) {
  return problem.partBytes();
}

namespace mlir::comms {
const Algorithm &getTwoShotAlgorithm();
} // namespace mlir::comms

const Algorithm &mlir::comms::getTwoShotAlgorithm() {
  static constexpr Algorithm algorithm = {
      "two_shot",
      "each tile goes to its owner, who sends the result to all",
      supports,
      cost,
      expand,
      pieces,
      /*dealsTiles=*/true,
      waiting};
  return algorithm;
}
