//===- Ring.cpp - From neighbor to neighbor -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank sends to the next one only. The most hops and the least traffic on
// any link: for large arrays, and for ranks that reach only their neighbors.
//
// A sum is built up on its way around the ring, rounded to the type that
// travels at each hop, and starts at a rank that depends on the tile: its order
// is not that of the ranks. The finished sum is rounded once and handed around,
// so every rank has the same bits.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

namespace {
/// The ring as one rank sees it.
struct Ring {
  explicit Ring(CollectiveBuilder &b)
      : b(b), next(b.rankAfter(b.constant(1))),
        previous(b.rankAfter(b.constant(b.ranks() - 1))),
        steps(b.constant(b.ranks() - 1)) {}

  /// The rank `distance` before this one; `distance` is at most the ranks.
  Value before(Value distance) {
    return b.mod(b.sub(b.add(b.rank(), b.numRanks()), distance), b.numRanks());
  }

  /// One turn around the ring: `body` for each step, with what is carried.
  Tiles turn(ValueRange carried,
             function_ref<Tiles(Value step, ValueRange carried)> body) {
    return b.loop(b.constant(0), steps, b.constant(1), carried, body);
  }

  CollectiveBuilder &b;
  Value next, previous, steps;
};
} // namespace

//===----------------------------------------------------------------------===//
// all_reduce
//===----------------------------------------------------------------------===//

namespace {
/// The tiles of a block, taken in rounds of one a rank: at each step every rank
/// works on another tile of the round. The last round may lack tiles.
struct Round {
  CollectiveBuilder &b;
  Value number;

  /// Tile of place `place` (0 … ranks - 1) in this round.
  Value tile(Value place) {
    Value index = b.add(b.mul(number, b.numRanks()), place);
    return b.add(b.block(), b.mul(index, b.blocks()));
  }
  Value exists(Value tile) {
    return b.less(tile, b.constant(b.problem().tiles));
  }

  /// Slot of what is exchanged at a step of this round. A rank receives all but
  /// one of a round's tiles, so that slots of steps are fewer than of tiles,
  /// where the number of blocks is known.
  Value slot(Value step, Value tile) {
    if (!areSlotsOfSteps(b))
      return tile;
    Value index = b.add(b.mul(number, b.constant(b.ranks() - 1)), step);
    return b.add(b.block(), b.mul(index, b.blocks()));
  }
  static int64_t countSlots(CollectiveBuilder &b) {
    return areSlotsOfSteps(b) ? countSlotsOfSteps(b) : b.problem().tiles;
  }

  static Value count(CollectiveBuilder &b) {
    // Not negative: block() < blocks().
    Value end = b.add(b.constant(b.problem().tiles), b.blocks());
    Value own = b.div(b.sub(end, b.add(b.block(), b.constant(1))), b.blocks());
    return b.divCeil(own, b.numRanks());
  }

private:
  static int64_t countSlotsOfSteps(CollectiveBuilder &b) {
    int64_t blocks = *b.constantBlocks();
    int64_t rounds = llvm::divideCeil(b.problem().tiles, blocks * b.ranks());
    return rounds * (b.ranks() - 1) * blocks;
  }
  static bool areSlotsOfSteps(CollectiveBuilder &b) {
    return b.constantBlocks() && b.ranks() > 1 &&
           countSlotsOfSteps(b) < b.problem().tiles;
  }
};
} // namespace

/// Adds up: at step s a rank sends place rank - s and receives place rank - s
/// - 1. Ends with place rank + 1, complete, in the accumulators.
static Tiles reduceRound(Ring &ring, Round &round, const Channels &channels) {
  CollectiveBuilder &b = ring.b;
  auto own = [&](Value tile) { return b.extend(b.produce({}, tile)); };
  Value first = round.tile(b.rank());
  Tiles sum = b.ifElse(
      round.exists(first), [&] { return own(first); },
      [&] { return b.zeroAccumulators(); });
  return ring.turn(sum, [&](Value step, ValueRange sum) {
    Value sent = round.tile(ring.before(step));
    b.ifThen(round.exists(sent), [&] {
      b.send(channels, b.round(sum), round.slot(step, sent), ring.next, sent);
    });
    b.endRound(channels);
    Value got = round.tile(ring.before(b.add(step, b.constant(1))));
    return b.ifElse(
        round.exists(got),
        [&] {
          Tiles partial = b.extend(
              b.receive(channels, round.slot(step, got), ring.previous, got));
          return b.combine(partial, own(got));
        },
        [&] { return Tiles(sum); });
  });
}

/// Hands finished tiles around: at step s a rank sends place rank + 1 - s and
/// receives place rank - s.
static void gatherRound(Ring &ring, Round &round, const Channels &channels,
                        Tiles finished) {
  CollectiveBuilder &b = ring.b;
  Value first = round.tile(ring.next);
  b.ifThen(round.exists(first),
           [&] { b.consume(b.extend(finished), {}, first); });
  ring.turn(finished, [&](Value step, ValueRange carried) {
    Value sent = round.tile(
        b.mod(b.add(ring.before(step), b.constant(1)), b.numRanks()));
    b.ifThen(round.exists(sent), [&] {
      b.send(channels, carried, round.slot(step, sent), ring.next, sent);
    });
    b.endRound(channels);
    Value got = round.tile(ring.before(step));
    return b.ifElse(
        round.exists(got),
        [&] {
          Tiles tiles =
              b.receive(channels, round.slot(step, got), ring.previous, got);
          b.consume(b.extend(tiles), {}, got);
          return tiles;
        },
        [&] { return Tiles(carried); });
  });
}

static void expandAllReduce(CollectiveBuilder &b) {
  int64_t slots = Round::countSlots(b);
  Channels partial =
      b.channels(ChannelPattern::Single, slots, Payload::Partial);
  Channels finished =
      b.channels(ChannelPattern::Single, slots, Payload::Partial);
  Ring ring(b);
  b.loop(Round::count(b), [&](Value number) {
    Round round{b, number};
    Tiles sum = reduceRound(ring, round, partial);
    gatherRound(ring, round, finished, b.round(b.finish(sum)));
  });
}

//===----------------------------------------------------------------------===//
// reduce_scatter, all_gather
//===----------------------------------------------------------------------===//

/// Slot of tile `tile` at step `step`: each step has its own.
static Value getSlot(CollectiveBuilder &b, Value step, Value tile) {
  return b.add(b.mul(step, b.constant(b.problem().tiles)), tile);
}

/// At step s a rank sends the sum of part rank - s - 1 and receives that of
/// part rank - s - 2; the last one that it receives is its own.
static void expandReduceScatter(CollectiveBuilder &b) {
  Channels channels =
      b.channels(ChannelPattern::Single, (b.ranks() - 1) * b.problem().tiles,
                 Payload::Partial);
  Ring ring(b);
  b.forOwnTiles([&](Value tile) {
    auto own = [&](Value distance) {
      return b.extend(b.produce(ring.before(distance), tile));
    };
    Tiles first = own(b.constant(1));
    Tiles sum = ring.turn(first, [&](Value step, ValueRange sum) {
      Value slot = getSlot(b, step, tile);
      b.send(channels, b.round(sum), slot, ring.next, tile);
      b.endRound(channels);
      Tiles partial = b.extend(b.receive(channels, slot, ring.previous, tile));
      // Distance `ranks`, at the last step, is this rank itself.
      return b.combine(partial, own(b.add(step, b.constant(2))));
    });
    b.consume(b.finish(sum), {}, tile);
  });
}

/// At step s a rank sends part rank - s and receives part rank - s - 1.
static void expandAllGather(CollectiveBuilder &b) {
  Channels channels =
      b.channels(ChannelPattern::Single, (b.ranks() - 1) * b.problem().tiles);
  Ring ring(b);
  b.forOwnTiles([&](Value tile) {
    Tiles own = b.produce({}, tile);
    b.consume(own, b.rank(), tile);
    ring.turn(own, [&](Value step, ValueRange carried) {
      Value slot = getSlot(b, step, tile);
      b.send(channels, carried, slot, ring.next, tile);
      b.endRound(channels);
      Tiles tiles = b.receive(channels, slot, ring.previous, tile);
      b.consume(tiles, ring.before(b.add(step, b.constant(1))), tile);
      return tiles;
    });
  });
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

/// A pipeline: at step s the rank at distance d from the root sends the block's
/// (s - d)-th tile, and receives the (s - d + 1)-th, which it sends next.
static void expandBroadcast(CollectiveBuilder &b) {
  Channels channels = b.channels(ChannelPattern::Single, b.problem().tiles);
  Ring ring(b);
  Value zero = b.constant(0), one = b.constant(1);
  Value distance = ring.before(b.root());
  Value isRoot = b.equal(distance, zero);
  Value end = b.add(b.constant(b.problem().tiles), b.blocks());
  Value count = b.div(b.sub(end, b.add(b.block(), one)), b.blocks());
  // The last tile leaves the root at step count - 1 and is ranks - 2 hops away
  // from where it is received last. A block without tiles takes no step.
  Value steps =
      b.select(b.equal(count, zero), zero,
               b.add(count, b.constant(std::max<int64_t>(b.ranks() - 2, 0))));
  auto tileOf = [&](Value index) {
    return b.add(b.block(), b.mul(index, b.blocks()));
  };

  b.beginCollective();
  Tiles none = b.zeros(Payload::Wire);
  b.loop(zero, steps, one, none, [&](Value step, ValueRange carried) {
    // Below zero is a huge number, and so not below `count`.
    Value index =
        b.builder().createOrFold<arith::SubIOp>(b.loc(), step, distance);
    Value hasTile = b.less(index, count);
    Value sent = tileOf(index);
    Tiles tiles = b.ifElse(
        b.both(isRoot, hasTile),
        [&] {
          Tiles own = b.produce({}, sent);
          b.consume(own, {}, sent);
          return own;
        },
        [&] { return Tiles(carried); });
    Value hasNext = b.less(distance, b.constant(b.ranks() - 1));
    b.ifThen(b.both(hasTile, hasNext),
             [&] { b.send(channels, tiles, sent, ring.next, sent); });
    b.endRound(channels);
    Value following = b.add(index, one);
    Value got = tileOf(following);
    return b.ifElse(
        b.both(b.less(zero, distance), b.less(following, count)),
        [&] {
          Tiles tiles = b.receive(channels, got, ring.previous, got);
          b.consume(tiles, {}, got);
          return tiles;
        },
        [&] { return Tiles(carried); });
  });
  b.endCollective();
}

//===----------------------------------------------------------------------===//
// The algorithm
//===----------------------------------------------------------------------===//

namespace {
/// A collective that the ring carries out, with its hops and how many copies of
/// a part pass a link.
struct Row {
  StringRef kind;
  void (*expand)(CollectiveBuilder &);
  double (*hops)(const CollectiveInfo &);
  double (*copies)(const CollectiveInfo &);
};
} // namespace

static double onePart(const CollectiveInfo &) { return 1; }
static double oneTurn(const CollectiveInfo &problem) {
  return double(problem.ranks - 1);
}
static double twoTurns(const CollectiveInfo &problem) {
  return 2 * oneTurn(problem);
}
static double sharesOfTwoTurns(const CollectiveInfo &problem) {
  return twoTurns(problem) * problem.largestShare();
}

static constexpr Row rows[] = {
    {"all_reduce", expandAllReduce, twoTurns, sharesOfTwoTurns},
    {"reduce_scatter", expandReduceScatter, oneTurn, oneTurn},
    {"all_gather", expandAllGather, oneTurn, oneTurn},
    {"broadcast", expandBroadcast, oneTurn, onePart},
};

static const Row *findRow(const CollectiveInfo &problem) {
  for (const Row &row : rows)
    if (row.kind == problem.kind->name)
      return &row;
  return nullptr;
}

static bool supports(const CollectiveInfo &problem, std::string &why) {
  if (problem.isSized()) {
    why = CollectiveInfo::whyNotSized;
    return false;
  }
  if (findRow(problem))
    return true;
  why = "it implements all_reduce, reduce_scatter, all_gather and broadcast";
  return false;
}

static double cost(const CollectiveInfo &problem) {
  const Row *row = findRow(problem);
  return row->hops(problem) * problem.hop +
         problem.transfer(row->copies(problem));
}

static LogicalResult expand(CollectiveBuilder &b) {
  findRow(b.problem())->expand(b);
  return success();
}

static int64_t pieces(const CollectiveInfo &problem) {
  return problem.kind->movement == Movement::Same ? problem.ranks : 1;
}

namespace mlir::comms {
const Algorithm &getRingAlgorithm();
} // namespace mlir::comms

const Algorithm &mlir::comms::getRingAlgorithm() {
  static constexpr Algorithm algorithm = {"ring",
                                          "tiles go from neighbor to neighbor",
                                          supports,
                                          cost,
                                          expand,
                                          pieces,
                                          /*dealsTiles=*/true,
                                          /*waiting=*/nullptr,
                                          /*isChain=*/true};
  return algorithm;
}
