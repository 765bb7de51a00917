//===- Permutation.cpp - At step k every rank turns to the k-th after it --===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For large messages. An exchange of all with all goes in ranks - 1 steps: at
// step k rank r writes to rank r + k, so every link carries one stream in each
// direction, and a barrier of block b of all ranks after each step keeps it so.
// Where all write to all at once a host of four H200 moves 290 GB/s a GPU, in
// step 360.
//
// What is final is written straight into the receiver's output where that is a
// window, and crosses memory once: the parts of all_gather, all_to_all and
// broadcast, and the sums of all_reduce. What is still to be summed goes
// through slots of a channel, and through a channel goes everything where an
// output is no window, or where the receiver's own arguments take part.
//
// Direct writes are ordered by barriers:
//   - a rank writes into a peer's output behind a barrier that the peer has
//     joined in this launch: whoever read the output before, has read it, and
//     what the peer's input held there, if input and output are one array, has
//     been sent (all_to_all sends until its last step, so it does not write
//     directly into an input);
//   - the collective ends in a barrier, behind which all of the own output has
//     been written.
//
// Slots are bounded: a message that is larger goes in rounds, each of which
// uses all slots. A round's sends come behind the barrier that ends the round
// before it, before which all have received. That takes a protocol whose
// channels can be reused; over the others every tile has a slot.
//
// A sum is made in rank order by the owner of its part, and rounded once to the
// type that travels: the bits are those of a two-shot.
//
// A part is a run of neighbouring tiles. In a round, slot s of a part belongs
// to block s mod num_blocks on every rank.
//
//===----------------------------------------------------------------------===//

#include "lowering/Accesses.h"
#include "lowering/Algorithm.h"
#include "lowering/CollectiveBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Parts, rounds and steps
//===----------------------------------------------------------------------===//

namespace {
/// How the tiles of parts are dealt to rounds and slots.
struct Deal {
  /// Parts that one array is cut into: more than one where it has none by
  /// itself (`Movement::Same`).
  int64_t pieces = 1;
  /// Tiles of a part or piece; slots of a round; rounds.
  int64_t tiles = 0, slots = 0, rounds = 1;
};

class Exchange {
public:
  Exchange(CollectiveBuilder &b, Deal deal) : b(b), deal(deal) {}

  /// `body` for this block's slots of a round, with the tile of part `part` in
  /// each: its number in the array or, where arrays have parts, in the part.
  void forTiles(Value part, Value round,
                function_ref<void(Value slot, Value tile)> body);
  /// The same for the tiles of several parts at a time, or one at a time where
  /// some may not exist.
  void forTiles(
      ValueRange parts, Value round,
      function_ref<void(Value slot, ValueRange parts, ValueRange tiles)> body);
  /// Each step: `body` with the peer, a barrier between two. `first` says
  /// whether it is the first. A rank that is alone takes one, with itself.
  /// Without `inStep` there are no barriers.
  void forSteps(function_ref<void(Value peer, bool first)> body,
                bool inStep = true);
  /// `body` for each round.
  void forRounds(function_ref<void(Value round)> body);
  /// Ends a round: others may write what this rank has read in it.
  void endRound() {
    if (deal.rounds > 1)
      b.barrier();
  }
  Channels channels(ChannelPattern pattern, Payload payload) {
    return b.channels(pattern, deal.slots, payload, deal.rounds > 1);
  }

  CollectiveBuilder &b;
  Deal deal;

private:
  /// The tile in a slot, and whether it exists (null: it does).
  std::pair<Value, Value> tileOf(Value part, Value round, Value slot);
};
} // namespace

std::pair<Value, Value> Exchange::tileOf(Value part, Value round, Value slot) {
  Value tile = b.add(b.mul(round, b.constant(deal.slots)), slot);
  Value exists;
  if (deal.slots * deal.rounds > deal.tiles)
    exists = b.less(tile, b.constant(deal.tiles));
  if (deal.pieces == 1)
    return {tile, exists};
  tile = b.add(b.mul(part, b.constant(deal.tiles)), tile);
  if (deal.pieces * deal.tiles > b.problem().tiles) {
    Value isInside = b.less(tile, b.constant(b.problem().tiles));
    exists = exists ? b.both(exists, isInside) : isInside;
  }
  return {tile, exists};
}

void Exchange::forTiles(
    ValueRange parts, Value round,
    function_ref<void(Value, ValueRange, ValueRange)> body) {
  auto visit = [&](Value slot) {
    Tiles certain;
    for (Value part : parts) {
      auto [tile, exists] = tileOf(part, round, slot);
      if (exists)
        b.ifThen(exists, [&, tile = tile] { body(slot, part, tile); });
      else
        certain.push_back(tile);
    }
    if (!certain.empty())
      body(slot, parts, certain);
  };
  b.loop(b.block(), b.constant(deal.slots), b.blocks(), {},
         [&](Value slot, ValueRange) {
           visit(slot);
           return Tiles();
         });
}

void Exchange::forTiles(Value part, Value round,
                        function_ref<void(Value, Value)> body) {
  forTiles(ValueRange(part), round,
           [&](Value slot, ValueRange, ValueRange tiles) {
             body(slot, tiles.front());
           });
}

void Exchange::forSteps(function_ref<void(Value, bool)> body, bool inStep) {
  int64_t last = b.ranks() - 1;
  body(b.rankAfter(b.constant(1)), true);
  auto step = [&](Value distance) {
    // A relaxed one would do; that it keeps the ranks in step is not measured.
    if (inStep)
      b.barrier();
    body(b.rankAfter(distance), false);
  };
  if (last > 2)
    b.loop(b.constant(2), b.constant(last), b.constant(1), {},
           [&](Value distance, ValueRange) {
             step(distance);
             return Tiles();
           });
  if (last > 1)
    step(b.constant(last));
}

void Exchange::forRounds(function_ref<void(Value)> body) {
  if (deal.rounds == 1)
    return body(b.constant(0));
  b.loop(b.constant(deal.rounds), body);
}

/// Deals `tiles` tiles of each part to as few rounds as the slots of `rows`
/// sources allow.
static Deal makeDeal(CollectiveBuilder &b, int64_t pieces, int64_t rows) {
  const Problem &problem = b.problem();
  Deal deal;
  deal.pieces = pieces;
  deal.tiles = llvm::divideCeil(problem.tiles, pieces);
  deal.slots = deal.tiles;
  if (!b.canReuseSlots())
    return deal;
  int64_t bytes = 0;
  for (const WireTile &wire : problem.wires)
    bytes += wire.length *
             llvm::divideCeil(wire.elementType.getIntOrFloatBitWidth(), 8);
  int64_t most = std::max<int64_t>(
      problem.roundBytes / std::max<int64_t>(bytes, 1) / rows, 1);
  deal.rounds = llvm::divideCeil(deal.tiles, most);
  deal.slots = llvm::divideCeil(deal.tiles, deal.rounds);
  return deal;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Sends `peers`, ranks, what they are to get. Loads come before stores, so
/// that they wait together.
static void sendTo(Exchange &e, const Channels &channels, Value round,
                   ValueRange peers) {
  CollectiveBuilder &b = e.b;
  bool parts = b.problem().inputParts() > 1;
  e.forTiles(peers, round, [&](Value slot, ValueRange peers, ValueRange tiles) {
    SmallVector<Tiles> produced;
    for (auto [peer, tile] : llvm::zip_equal(peers, tiles))
      produced.push_back(b.produce(parts ? peer : Value(), tile));
    for (auto [index, peer] : llvm::enumerate(peers))
      b.send(channels, produced[index], slot, peer, tiles[index]);
  });
}

/// Ranks whose tiles are loaded together: they stay in registers.
static constexpr int64_t mostTogether = 8;

/// All ranks, beginning behind this one.
static Tiles everyone(CollectiveBuilder &b) {
  Tiles ranks;
  for (int64_t distance = 1; distance <= b.ranks(); ++distance)
    ranks.push_back(b.rankAfter(b.constant(distance)));
  return ranks;
}

/// `peer` and this rank, which are one where it is alone.
static Tiles withOwn(CollectiveBuilder &b, Value peer) {
  return b.ranks() > 1 ? Tiles{peer, b.rank()} : Tiles{peer};
}

/// Whether steps are worth their barriers: by the bytes that one rank sends
/// another.
static bool goesInSteps(const Problem &problem, double parts) {
  constexpr double least = 4 << 20;
  return problem.partBytes() / parts >= least;
}

/// Sends all ranks what they are to get, this one included: what it keeps takes
/// the same way, so that a sum is one loop over slots.
static void sendToAll(Exchange &e, const Channels &channels, Value round,
                      bool inSteps) {
  CollectiveBuilder &b = e.b;
  if (!inSteps && b.ranks() <= mostTogether)
    return sendTo(e, channels, round, everyone(b));
  e.forSteps(
      [&](Value peer, bool first) {
        sendTo(e, channels, round, first ? withOwn(b, peer) : Tiles{peer});
      },
      inSteps);
}

/// Brings what all ranks have of a part to its owner.
static void scatterRound(Exchange &e, const Channels &channels, Value round) {
  sendToAll(e, channels, round, goesInSteps(e.b.problem(), e.deal.pieces));
  e.b.endRound(channels);
}

static Tiles sumTile(CollectiveBuilder &b, const Channels &channels, Value slot,
                     Value tile) {
  return b.foldRanks(
      [&](Value peer) { return b.receive(channels, slot, peer, tile); });
}

/// Into the own outputs and those of `peer`.
static void storeToBoth(CollectiveBuilder &b, ValueRange outputs, Value part,
                        Value tile, Value peer) {
  b.storeOutputs(outputs, part, tile);
  if (b.ranks() > 1)
    b.storeOutputs(outputs, part, tile, peer);
}

/// Writes the own part into the outputs of all: `get` gives a tile of it, as it
/// travels.
static void gatherDirectly(Exchange &e, Value round,
                           function_ref<Tiles(Value slot, Value tile)> get) {
  CollectiveBuilder &b = e.b;
  auto outputs = [&](Value slot, Value tile) {
    return b.makeOutputs(get(slot, tile), {}, tile);
  };
  // The sends of this round have been made: outputs may be written.
  b.barrier();
  if (!goesInSteps(b.problem(), e.deal.pieces))
    e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
      Tiles made = outputs(slot, tile);
      b.forRanksRotated(
          [&](Value peer) { b.storeOutputs(made, {}, tile, peer); });
    });
  else
    e.forSteps([&](Value peer, bool first) {
      e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
        if (first)
          return storeToBoth(b, outputs(slot, tile), {}, tile, peer);
        b.storeOutputs(b.loadOutputs({}, tile), {}, tile, peer);
      });
    });
  b.barrier();
}

/// The same through a channel.
static void gatherRound(Exchange &e, const Channels &channels,
                        const Channels &sums, Value round) {
  CollectiveBuilder &b = e.b;
  e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
    b.send(sums, b.round(sumTile(b, channels, slot, tile)), slot, {}, tile);
  });
  b.endRound(sums);
  b.loop(b.numRanks(), [&](Value owner) {
    e.forTiles(owner, round, [&](Value slot, Value tile) {
      b.consume(b.extend(b.receive(sums, slot, owner, tile)), {}, tile);
    });
  });
  e.endRound();
}

static void expandAllReduce(CollectiveBuilder &b) {
  Exchange e(b, makeDeal(b, b.ranks(), b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  bool direct = b.problem().storesToPeers();
  Channels sums;
  if (!direct)
    sums = e.channels(ChannelPattern::Multicast, Payload::Partial);
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    if (direct)
      gatherDirectly(e, round, [&](Value slot, Value tile) {
        return b.extend(b.round(sumTile(b, channels, slot, tile)));
      });
    else
      gatherRound(e, channels, sums, round);
  });
}

static void expandReduceScatter(CollectiveBuilder &b) {
  Exchange e(b, makeDeal(b, 1, b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
      b.consume(sumTile(b, channels, slot, tile), {}, tile);
    });
    e.endRound();
  });
}

//===----------------------------------------------------------------------===//
// all_gather, all_to_all
//===----------------------------------------------------------------------===//

/// all_gather of messages that are not worth a barrier a step: a tile is loaded
/// once and written to all.
static void writeToAll(Exchange &e, Value part) {
  CollectiveBuilder &b = e.b;
  e.forTiles(b.constant(0), b.constant(0), [&](Value, Value tile) {
    Tiles outputs = b.makeOutputs(b.produce({}, tile), part, tile);
    b.forRanksRotated(
        [&](Value peer) { b.storeOutputs(outputs, part, tile, peer); });
  });
}

static void copyDirectly(CollectiveBuilder &b) {
  const Problem &problem = b.problem();
  Deal deal;
  deal.tiles = deal.slots = problem.tiles;
  Exchange e(b, deal);
  Value zero = b.constant(0), own = b.rank();
  auto outputs = [&](Value part, Value tile) {
    return b.makeOutputs(b.produce(part, tile), own, tile);
  };
  auto writeParts = [&](ValueRange peers) {
    e.forTiles(peers, zero, [&](Value, ValueRange peers, ValueRange tiles) {
      SmallVector<Tiles> made;
      for (auto [peer, tile] : llvm::zip_equal(peers, tiles))
        made.push_back(outputs(peer, tile));
      for (auto [index, peer] : llvm::enumerate(peers))
        b.storeOutputs(made[index], own, tiles[index], peer);
    });
  };
  bool inSteps = goesInSteps(problem, 1);
  b.barrier();
  if (problem.inputParts() == 1 && !inSteps)
    writeToAll(e, own);
  else if (problem.inputParts() == 1)
    e.forSteps([&](Value peer, bool first) {
      e.forTiles(zero, zero, [&](Value, Value tile) {
        Tiles made = outputs({}, tile);
        if (first)
          return storeToBoth(b, made, own, tile, peer);
        b.storeOutputs(made, own, tile, peer);
      });
    });
  else if (!inSteps && b.ranks() <= mostTogether)
    writeParts(everyone(b));
  else
    e.forSteps(
        [&](Value peer, bool first) {
          writeParts(first ? withOwn(b, peer) : Tiles{peer});
        },
        inSteps);
  b.barrier();
}

static void copyThroughChannel(CollectiveBuilder &b) {
  Exchange e(b, makeDeal(b, 1, b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  e.forRounds([&](Value round) {
    scatterRound(e, channels, round);
    b.loop(b.numRanks(), [&](Value source) {
      e.forTiles(source, round, [&](Value slot, Value tile) {
        b.consume(b.receive(channels, slot, source, tile), source, tile);
      });
    });
    e.endRound();
  });
}

/// Whether an output is memory that an input is.
static bool sharesMemory(const Problem &problem) {
  return llvm::any_of(problem.outputs, [&](const TileArray &output) {
    return llvm::any_of(problem.inputs, [&](const TileArray &input) {
      return getMemoryRoot(output.memory).value ==
             getMemoryRoot(input.memory).value;
    });
  });
}

static void expandCopies(CollectiveBuilder &b) {
  const Problem &problem = b.problem();
  if (problem.storesToPeers() && !sharesMemory(problem))
    copyDirectly(b);
  else
    copyThroughChannel(b);
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

/// Bytes up to which the root writes the whole to everybody.
static constexpr double wholeBytes = 256 << 10;
/// Bytes from which on a broadcast is a pipeline, and those of its chunks.
static constexpr double pipelineBytes = 12 << 20, chunkBytes = 4 << 20;
static constexpr int64_t mostChunks = 12;

static bool isSmallBroadcast(const Problem &problem) {
  return problem.ranks <= 2 || problem.partBytes() <= wholeBytes;
}

static bool isPipelined(const Problem &problem) {
  return !isSmallBroadcast(problem) && problem.partBytes() >= pipelineBytes;
}

static int64_t countChunks(const Problem &problem) {
  return std::min(int64_t(problem.partBytes() / chunkBytes), mostChunks);
}

/// The root writes everything to all.
static void broadcastWhole(CollectiveBuilder &b) {
  Deal deal;
  deal.tiles = deal.slots = b.problem().tiles;
  Exchange e(b, deal);
  b.barrier();
  b.ifThen(b.isRank(b.root()), [&] { writeToAll(e, {}); });
  b.barrier();
}

/// The root sends each rank a piece, which hands it on to all.
static void broadcastPieces(CollectiveBuilder &b) {
  Exchange e(b, makeDeal(b, b.ranks(), b.ranks()));
  Channels channels = e.channels(ChannelPattern::Pairwise, Payload::Wire);
  e.forRounds([&](Value round) {
    // One sender: there is nothing to keep in step.
    b.ifThen(b.isRank(b.root()),
             [&] { sendToAll(e, channels, round, /*inSteps=*/false); });
    b.endRound(channels);
    gatherDirectly(e, round, [&](Value slot, Value tile) {
      return b.receive(channels, slot, b.root(), tile);
    });
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
  Pipeline(CollectiveBuilder &b, Deal deal)
      : b(b), e(b, deal), owners(b.ranks() - 1),
        number(b.mod(
            b.sub(b.add(b.rank(), b.constant(2 * b.ranks() - 1)), b.root()),
            b.numRanks())) {}

  void run();

private:
  Value modulo(Value value) { return b.mod(value, b.constant(owners)); }
  /// Of owner number `number`, the rank.
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
  void handOn(Value round, Value step);

  CollectiveBuilder &b;
  Exchange e;
  int64_t owners;
  /// This rank's number; `owners` at the root.
  Value number;
};
} // namespace

void Pipeline::sendPiece(Value round, Value step) {
  e.forTiles(step, round, [&](Value, Value tile) {
    Tiles outputs = b.makeOutputs(b.produce({}, tile), {}, tile);
    storeToBoth(b, outputs, {}, tile, rankOf(step));
  });
}

void Pipeline::handOn(Value round, Value step) {
  Value to = receiver(step);
  Value isOther = b.either(b.less(to, number), b.less(number, to));
  b.ifThen(isOther, [&] {
    e.forTiles(number, round, [&](Value, Value tile) {
      b.storeOutputs(b.loadOutputs({}, tile), {}, tile, rankOf(to));
    });
  });
}

void Pipeline::run() {
  Value one = b.constant(1), rounds = b.constant(e.deal.rounds);
  Value isOwner = b.less(number, b.constant(owners));
  auto forSteps = [&](Value condition, function_ref<void(Value)> body) {
    b.ifThen(condition, [&] { b.loop(b.constant(owners), body); });
  };
  b.barrier();
  b.loop(b.add(rounds, one), [&](Value round) {
    forSteps(b.both(b.isRank(b.root()), b.less(round, rounds)),
             [&](Value step) { sendPiece(round, step); });
    forSteps(b.both(isOwner, b.less(b.constant(0), round)),
             [&](Value step) { handOn(b.sub(round, one), step); });
    b.barrier();
  });
}

static void broadcastInPipeline(CollectiveBuilder &b) {
  const Problem &problem = b.problem();
  Deal deal;
  deal.pieces = problem.ranks - 1;
  deal.tiles = llvm::divideCeil(problem.tiles, deal.pieces);
  deal.rounds = std::min(countChunks(problem), deal.tiles);
  deal.slots = llvm::divideCeil(deal.tiles, deal.rounds);
  Pipeline(b, deal).run();
}

static void expandBroadcast(CollectiveBuilder &b) {
  if (isSmallBroadcast(b.problem()))
    broadcastWhole(b);
  else if (isPipelined(b.problem()))
    broadcastInPipeline(b);
  else
    broadcastPieces(b);
}

//===----------------------------------------------------------------------===//
// The algorithm
//===----------------------------------------------------------------------===//

namespace {
/// What an exchange costs: hops over channels, barriers of all ranks, those
/// between steps among them, and how many copies of a part pass a link through
/// channels and straight into outputs.
struct Load {
  double hops = 0, barriers = 0, copies = 0, direct = 0;
  bool inStep = false;
};

struct Row {
  StringRef kind;
  void (*expand)(CollectiveBuilder &);
  Load (*load)(const Problem &);
};
} // namespace

/// Whether each rank has one peer at a time: there is one, or barriers see to
/// it.
static bool isInStep(const Problem &problem, double parts) {
  return problem.ranks == 2 || goesInSteps(problem, parts);
}

/// Barriers between the steps of one exchange of all with all.
static double countSteps(const Problem &problem, double parts) {
  return problem.ranks > 2 && goesInSteps(problem, parts)
             ? double(problem.ranks - 2)
             : 0;
}

static Load loadOfAllReduce(const Problem &problem) {
  double ranks = double(problem.ranks), steps = countSteps(problem, ranks);
  bool inStep = isInStep(problem, ranks);
  double copies = (ranks - 1) / ranks;
  if (!problem.storesToPeers())
    return {2, steps, 2 * copies, 0, inStep};
  return {1, 2 + 2 * steps, copies, copies, inStep};
}

static Load loadOfReduceScatter(const Problem &problem) {
  return {1, countSteps(problem, 1), double(problem.ranks - 1), 0,
          isInStep(problem, 1)};
}

static Load loadOfCopies(const Problem &problem) {
  double copies = double(problem.ranks - 1), steps = countSteps(problem, 1);
  if (!problem.storesToPeers())
    return {1, steps, copies, 0, isInStep(problem, 1)};
  return {0, 2 + steps, 0, copies, isInStep(problem, 1)};
}

static Load loadOfBroadcast(const Problem &problem) {
  double ranks = double(problem.ranks);
  if (isSmallBroadcast(problem))
    return {0, 2, 0, ranks - 1, ranks == 2};
  double copies = (ranks - 1) / ranks;
  if (!isPipelined(problem))
    return {1, 2, copies, copies, false};
  double chunks = double(countChunks(problem));
  return {0, 2 + chunks, 0, 1 + 1 / chunks, true};
}

static constexpr Row rows[] = {
    {"all_reduce", expandAllReduce, loadOfAllReduce},
    {"reduce_scatter", expandReduceScatter, loadOfReduceScatter},
    {"all_gather", expandCopies, loadOfCopies},
    {"all_to_all", expandCopies, loadOfCopies},
    {"broadcast", expandBroadcast, loadOfBroadcast},
};

static const Row *findRow(const Problem &problem) {
  for (const Row &row : rows)
    if (row.kind == problem.kind->name)
      return &row;
  return nullptr;
}

static bool supports(const Problem &problem, std::string &why) {
  if (!findRow(problem)) {
    why = "it carries out all_reduce, reduce_scatter, all_gather, all_to_all "
          "and broadcast";
    return false;
  }
  if (problem.kind->direction == Direction::RootToAll &&
      !problem.storesToPeers()) {
    why = "a broadcast in permutations writes into the outputs of others: give "
          "it windows, and no args";
    return false;
  }
  return true;
}

static double cost(const Problem &problem) {
  Load load = findRow(problem)->load(problem);
  // What is written into outputs is written as it is.
  double copies = load.copies + load.direct / problem.overhead;
  return load.hops * problem.hop + load.barriers * problem.barrier +
         problem.transfer(copies, load.inStep);
}

static LogicalResult expand(CollectiveBuilder &b) {
  findRow(b.problem())->expand(b);
  return success();
}

static int64_t pieces(const Problem &problem) {
  return problem.kind->movement == Movement::Same ? problem.ranks : 1;
}

namespace mlir::comms {
const Algorithm &getPermutationAlgorithm();
} // namespace mlir::comms

const Algorithm &mlir::comms::getPermutationAlgorithm() {
  static constexpr Algorithm algorithm = {
      "permutation",
      "at step k every rank writes to the k-th after it, all in step",
      supports,
      cost,
      expand,
      pieces,
      /*dealsTiles=*/false};
  return algorithm;
}
