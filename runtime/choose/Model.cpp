//===- Model.cpp - The cost model -----------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Model.h"

#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveInfo.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <mutex>

using namespace commsir;
using namespace commsir::tune;
namespace comms = mlir::comms;

//===----------------------------------------------------------------------===//
// What is known of the machine, of protocols and of grids
//===----------------------------------------------------------------------===//

// Microseconds, bytes, and bytes a microsecond (1e3 of which are a GB/s).
// Fitted to what the built-in tables hold of 2 and 4 H200 (NVLink, NVSwitch, no
// multicast); fitted to 2 alone, they choose nearly as well for 4. What was
// measured by hand is told. test/tune/model.cpp holds by how much the choice is
// off, and docs/Benchmarking.md says where each constant comes from.

/// From the launch of a kernel to its first store, in a graph of kernels that
/// overlap: an empty kernel's 0.6, and its first instructions.
static constexpr double kLaunch = 0.7;
/// From a store to where its receiver has used it: 0.75 on the link (half a
/// flag's way there and back), and a poll.
static constexpr double kHop = 1.14;
/// Additional cost of each further peer that a thread stores to and polls.
static constexpr double kPeer = 0.18;
/// A barrier of all ranks, and what its blocks add: by the square root of their
/// number, for all wait for the last.
static constexpr double kBarrier = 1.4, kBlocks = 0.08;
/// Bandwidth out of a GPU if all write to all at once, and if each writes to
/// one other: 339 to 343 and 356 to 362 in measurements on 8 and 4 GPUs.
static constexpr double kRate = 340e3, kRateInStep = 360e3;
/// Bytes that wait in slots for the last phase are read from the L2, and what
/// is more from memory, while the links are idle; Lamport writes poison over
/// them besides.
static constexpr double kCached = 9e6, kMemoryRate = 2.5e6, kPoisonRate = 6e6;
/// Visible share of poisoning, which other work hides.
static constexpr double kSeen = 0.1;
/// Along the ring, where slots are filled while others are read, poison is what
/// is left of it, from fewer bytes on.
static constexpr double kCachedInRing = 4e6, kPoisonRateInRing = 2e6;
/// Each 128 threads that a CTA has to start and to have meet; for each row,
/// each doubling of the CTAs of a cluster, which meet too.
static constexpr double kThreads = 0.1, kCluster = 0.08;
/// Each further tile of a block, as far as the links do not hide it: a tenth of
/// their time does.
static constexpr double kTile = 0.2, kHidden = 0.1;
/// Costs of rows: the reductions along a row and what follows them; per
/// reduction, each further 16 bytes of a thread; Lamport's poison, which is
/// written in between; each further row of a block, whose threads synchronize
/// in each.
static constexpr double kRow = 0.5, kVector = 0.3, kRowPoison = 0.3,
                        kNextRow = 1.3;
/// Hops after the first: the least that remains when traffic of other blocks
/// hides them, and how much traffic hides them.
static constexpr double kLeftOfHop = 0.4, kHides = 6.0;

/// Devices, by their whole names, whose NVLink was seen to write lines of 128
/// bytes whole. (An H200 NVL or an H100 PCIe may reach peers by PCIe.)
static constexpr llvm::StringLiteral kWritesLines[] = {"NVIDIA H200",
                                                       "NVIDIA H100 80GB HBM3"};

/// Whether a protocol may be chosen that nobody asked for.
static bool isOpen(const ConfigQuery &query, const comms::ProtocolCost &cost) {
  if (query.chip == "cpu")
    return cost.cpuHop > 0;
  return !cost.needsWholeLines ||
         llvm::is_contained(kWritesLines, llvm::StringRef(query.device));
}

//===----------------------------------------------------------------------===//
// A question as the lowering sees it
//===----------------------------------------------------------------------===//

namespace {
/// Types live in a context; all questions share one, a thread at a time.
class Types {
public:
  static std::unique_lock<std::mutex> lock() {
    static std::mutex mutex;
    return std::unique_lock<std::mutex>(mutex);
  }
  /// Null when there is no such type.
  static mlir::Type parse(llvm::StringRef text) {
    static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler quiet(
        &context, [](mlir::Diagnostic &) { return mlir::success(); });
    return mlir::parseType(text, &context);
  }
};
} // namespace

/// Returns the facts that algorithms may ask about a collective; none if there
/// is no such op or type.
static std::optional<comms::CollectiveInfo>
makeProblem(const ConfigQuery &query) {
  const comms::CollectiveKind *kind = comms::findCollectiveKind(query.op);
  mlir::Type type = Types::parse(query.elementType);
  if (!kind || !type || !type.isIntOrFloat() || query.ranks < 1)
    return std::nullopt;
  comms::CollectiveInfo problem;
  problem.kind = kind;
  problem.ranks = query.ranks;
  problem.dest = query.ranks - 1;
  problem.windows = query.windows;
  if (kind->reduces)
    problem.reduction = comms::symbolizeReductionKind(query.reduction)
                            .value_or(comms::ReductionKind::Sum);
  int64_t bits = std::max<int64_t>(type.getIntOrFloatBitWidth(), 1);
  problem.flat = query.rows <= 0;
  int64_t elements = std::max<int64_t>(query.bytes * 8 / bits, 1);
  if (kind->movement == comms::Movement::Exchange)
    elements = std::max<int64_t>(elements / query.ranks, 1);
  problem.partElements = elements;
  problem.tiles =
      problem.flat ? std::max<int64_t>(elements / 1024, 1) : query.rows;
  problem.tileSize = std::max<int64_t>(elements / problem.tiles, 1);
  problem.wires.push_back({type, problem.tileSize});
  return problem;
}

static bool canTravel(const comms::Protocol &protocol,
                      const comms::CollectiveInfo &problem) {
  std::string why;
  return llvm::all_of(problem.wires, [&](const comms::WireTile &wire) {
    bool reducing = problem.reduction.has_value();
    return protocol.supports(wire.elementType, reducing, why) &&
           protocol.supports(problem.getPartialType(wire.elementType), reducing,
                             why) &&
           (problem.flat ||
            wire.length % protocol.getTileStep(wire.elementType) == 0);
  });
}

std::vector<std::pair<std::string, std::string>>
commsir::tune::listPairs(const ConfigQuery &query, bool everything) {
  auto lock = Types::lock();
  std::vector<std::pair<std::string, std::string>> pairs;
  std::optional<comms::CollectiveInfo> problem = makeProblem(query);
  if (!problem)
    return pairs;
  for (const comms::Algorithm *algorithm : comms::getAlgorithms()) {
    std::string why;
    if ((!query.algorithm.empty() && query.algorithm != algorithm->name) ||
        !algorithm->supports(*problem, why))
      continue;
    for (const comms::Protocol *protocol : comms::getProtocols()) {
      bool named = query.protocol == protocol->name;
      bool open = query.protocol.empty() &&
                  (everything || isOpen(query, protocol->cost));
      if ((named || open) && canTravel(*protocol, *problem))
        pairs.push_back({algorithm->name.str(), protocol->name.str()});
    }
  }
  return pairs;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
/// A pair of algorithm and protocol for a question, and what the algorithm's
/// own rule says of it.
struct Pair {
  comms::CollectiveInfo problem;
  const comms::Algorithm *algorithm = nullptr;
  const comms::Protocol *protocol = nullptr;
  /// Hops and barriers one after the other; microseconds on the busiest link.
  double hops = 0, barriers = 0, wires = 0;
};
} // namespace

static std::optional<Pair> makePair(const ConfigQuery &query,
                                    llvm::StringRef algorithm,
                                    llvm::StringRef protocol) {
  std::optional<comms::CollectiveInfo> problem = makeProblem(query);
  Pair pair;
  pair.algorithm = comms::findAlgorithm(algorithm);
  pair.protocol = comms::findProtocol(protocol);
  std::string why;
  if (!problem || !pair.algorithm || !pair.protocol ||
      !pair.algorithm->supports(*problem, why) ||
      !canTravel(*pair.protocol, *problem))
    return std::nullopt;
  pair.problem = std::move(*problem);
  comms::CollectiveInfo &asked = pair.problem;
  asked.overhead =
      std::max(1.0, pair.protocol->overhead(asked.wires.front().elementType));
  if (query.chip != "cpu") {
    asked.overhead *= pair.protocol->cost.weight;
    asked.rate = kRate;
    asked.rateInStep = kRateInStep;
  }
  // The rule is linear in what it is given.
  auto cost = [&](double hop, double barrier) {
    asked.hop = hop;
    asked.barrier = barrier;
    return pair.algorithm->cost(asked);
  };
  pair.wires = cost(0, 0);
  pair.hops = cost(1, 0) - pair.wires;
  pair.barriers = cost(0, 1) - pair.wires;
  return pair;
}

/// Time in which the links are idle, for memory is read.
static double getReading(const Pair &pair) {
  auto over = [](double bytes, double cached) {
    return std::max(0.0, bytes - cached);
  };
  bool poison = pair.protocol->cost.clears;
  double bytes =
      pair.algorithm->waiting ? pair.algorithm->waiting(pair.problem) : 0;
  // What is done with rows reads and writes others besides: a residual, what
  // it becomes, and the result.
  if (bytes > 0 && !pair.problem.flat)
    bytes += 3 * pair.problem.partBytes();
  double waiting = over(bytes, kCached);
  double time = waiting / kMemoryRate;
  if (poison)
    time += std::max(waiting, kSeen * pair.problem.partBytes()) / kPoisonRate;
  if (poison && pair.algorithm->isChain)
    time += over(pair.wires * kRate, kCachedInRing) / kPoisonRateInRing;
  return time;
}

/// From the launch to where the first data is used everywhere.
static double getLatency(const Pair &pair, int64_t blocks) {
  bool ring = pair.algorithm->isChain;
  double peers = double(std::max<int64_t>(pair.problem.ranks - 2, 0));
  // Where ranks meet anyhow, a send needs no meeting of its own.
  bool meets = pair.protocol->cost.meets && pair.barriers == 0;
  double hop =
      kHop +
      (pair.protocol->cost.meets && !meets ? 0 : pair.protocol->cost.moreHop);
  double hidden = pair.protocol->cost.meets
                      ? 1.0
                      : std::max(kLeftOfHop, 1 - pair.wires / kHides);
  double time = kLaunch + pair.barriers * kBarrier;
  // A rank of a ring has one peer.
  if (pair.hops > 0)
    time += hop + (hop - (ring ? kPeer : 0)) * (pair.hops - 1) * hidden;
  if (!ring)
    time += kPeer * peers;
  double meetings = pair.barriers + (pair.protocol->cost.meets ? pair.hops : 0);
  return time + kBlocks * std::sqrt(double(blocks)) * std::min(meetings, 2.0);
}

/// Tiles of a block, one after the other.
static int64_t countRounds(const Pair &pair, const ConfigQuery &query,
                           const Config &config) {
  int64_t tiles = countTiles(query, config.threads, config.cluster);
  bool same = pair.problem.kind->movement == comms::Movement::Same;
  if (pair.algorithm->dealsTiles || !same)
    return llvm::divideCeil(tiles, config.blocks);
  // A block has the same places of the parts of all ranks.
  int64_t ranks = pair.problem.ranks;
  return std::min<int64_t>(
      tiles, ranks * llvm::divideCeil(tiles, ranks * config.blocks));
}

/// Whether a block works on as many tiles at a time as there are ranks, so that
/// each has one of its own.
static bool takesTurns(const Pair &pair) {
  return pair.algorithm->isChain && pair.problem.kind->reduces &&
         pair.problem.kind->movement == comms::Movement::Same;
}

/// Microseconds on the busiest link: more than the rule says where blocks have
/// fewer tiles than there are ranks that take turns.
static double getWires(const Pair &pair, const ConfigQuery &query,
                       const Config &config) {
  if (!takesTurns(pair))
    return pair.wires;
  auto rounds = countRounds(pair, query, config);
  auto turns = llvm::alignTo(rounds, pair.problem.ranks);
  return pair.wires * double(turns) / double(rounds);
}

/// Returns the time of a block's tiles after the first.
static double getLoops(const Pair &pair, const ConfigQuery &query,
                       const Config &config) {
  int64_t rounds = countRounds(pair, query, config);
  bool rows = !pair.problem.flat;
  double loops = std::max(0.0, (rows ? kNextRow : kTile) * double(rounds - 1) -
                                   kHidden * pair.wires);
  if (!pair.algorithm->isChain)
    return loops;
  // One goes around the ring after the other; a broadcast is a pipeline.
  if (takesTurns(pair))
    rounds = llvm::divideCeil(rounds, pair.problem.ranks);
  bool pipeline = pair.problem.kind->direction == comms::Direction::RootToAll;
  double turn =
      (kHop + pair.protocol->cost.moreHop) * (pipeline ? 1 : pair.hops);
  // The next rank is waited for as the one before is.
  if (pair.protocol->cost.meets)
    turn *= 2;
  double turns = turn * double(rounds - 1);
  if (rows)
    return turns + loops;
  return pair.protocol->cost.meets ? turns : std::max(0.0, turns - pair.wires);
}

/// Returns the time that the CTA's shape adds.
static double getShape(const Pair &pair, const ConfigQuery &query,
                       const Config &config) {
  double time = kThreads * double(config.threads) / 128;
  if (pair.problem.flat)
    return time;
  int64_t cluster = std::max<int64_t>(config.cluster, 1);
  int64_t vectors =
      llvm::divideCeil(llvm::divideCeil(query.bytes, query.rows),
                       16 * std::max<int64_t>(config.threads * cluster, 1));
  auto rounds = double(countRounds(pair, query, config));
  time += kRow + rounds * (kVector * double(vectors - 1) +
                           kCluster * std::log2(double(cluster)));
  return pair.protocol->cost.clears ? time + kRowPoison : time;
}

static double estimatePair(const Pair &pair, const ConfigQuery &query,
                           const Recipe &recipe) {
  if (query.chip == "cpu") {
    double hop =
        pair.protocol->cost.cpuHop > 0 ? pair.protocol->cost.cpuHop : 1;
    return (pair.hops + pair.barriers) * hop + pair.wires;
  }
  Config config = applyRecipe(recipe, query);
  // Nothing travels by the protocol, unless input and output are one array,
  // which the question does not say: the leanest is for the best.
  double doubt = pair.hops == 0 ? 1e-3 * pair.problem.overhead : 0;
  return doubt + getLatency(pair, config.blocks) +
         getWires(pair, query, config) + getReading(pair) +
         getLoops(pair, query, config) + getShape(pair, query, config);
}

std::optional<double> commsir::tune::estimate(const ConfigQuery &query,
                                              const Recipe &recipe) {
  auto lock = Types::lock();
  std::optional<Pair> pair = makePair(query, recipe.algorithm, recipe.protocol);
  if (!pair)
    return std::nullopt;
  return estimatePair(*pair, query, recipe);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Shapes for rows: on one CTA or a cluster of them, with 16 bytes a thread or
/// 32, and what is more only where no CTA has the threads.
static std::vector<Recipe> listRowShapes(const ConfigQuery &query,
                                         const Recipe &pair) {
  int64_t vectors = std::max<int64_t>(
      llvm::divideCeil(llvm::divideCeil(query.bytes, query.rows), 16), 32);
  std::vector<Recipe> recipes;
  for (int64_t cluster = 1; cluster <= getMostCtas(query); cluster *= 2)
    for (int64_t threads = 32; threads <= 1024; threads *= 2) {
      int64_t all = cluster * threads;
      bool fits = vectors <= 2 * all || (cluster == 1 && threads == 1024);
      bool idle = all >= 2 * vectors && all > 32;
      if (!fits || idle || (cluster > 1 && (threads < 128 || threads > 256)))
        continue;
      Recipe recipe = pair;
      recipe.threads = threads;
      recipe.cluster = cluster;
      recipe.spread = 1;
      recipe.limit = countResident(query, threads);
      // Of two vectors the registers are too many for as many threads.
      if (vectors > all)
        recipe.limit = countMultiprocessors(query) *
                       std::max<int64_t>(512 / threads, 1) *
                       (cluster > 1 ? 9 : 10) / 10;
      recipes.push_back(std::move(recipe));
    }
  return recipes;
}

/// 16 bytes a thread in small CTAs while all are on the GPU at a time, for one
/// multiprocessor that sends to many is the limit; else one large CTA on each.
/// Those that keep their ranks in step meet in barriers, which are the faster
/// the fewer blocks there are: copies need no more to fill the links.
static void shapeFlat(const ConfigQuery &query, const Pair &pair,
                      Recipe &recipe) {
  const comms::CollectiveInfo &problem = pair.problem;
  auto part = int64_t(problem.partBytes());
  int64_t vectors = llvm::divideCeil(std::max<int64_t>(part, 1), 16);
  int64_t processors = countMultiprocessors(query);
  if (pair.algorithm->keepsStep && part >= 1 << 20) {
    bool copies = problem.kind->movement != comms::Movement::Same &&
                  !problem.kind->reduces && problem.storesToPeers();
    recipe.threads = 1024;
    recipe.limit = copies && problem.ranks > 2
                       ? std::min<int64_t>(64, processors)
                       : processors;
    return;
  }
  // Where threads would be idle, one warp, which shares smaller pieces out.
  recipe.threads = vectors < 64                  ? 32
                   : vectors <= 256              ? 64
                   : vectors <= 512 * processors ? 128
                   : part < 8 << 20              ? 512
                                                 : 1024;
  recipe.limit = countResident(query, recipe.threads);
}

static Recipe suggest(const ConfigQuery &query, const Pair &pair) {
  Recipe recipe;
  recipe.algorithm = pair.algorithm->name.str();
  recipe.protocol = pair.protocol->name.str();
  if (query.chip == "cpu")
    return recipe;
  if (pair.problem.flat) {
    shapeFlat(query, pair, recipe);
    if (takesTurns(pair))
      recipe.spread = pair.problem.ranks;
    return recipe;
  }
  std::vector<Recipe> shapes = listRowShapes(query, recipe);
  return *llvm::min_element(shapes, [&](const Recipe &a, const Recipe &b) {
    return estimatePair(pair, query, a) < estimatePair(pair, query, b);
  });
}

Recipe commsir::tune::suggestRecipe(const ConfigQuery &query,
                                    llvm::StringRef algorithm,
                                    llvm::StringRef protocol) {
  auto lock = Types::lock();
  if (auto pair = makePair(query, algorithm, protocol))
    return suggest(query, *pair);
  Recipe none;
  none.algorithm = algorithm.str();
  none.protocol = protocol.str();
  return none;
}

std::vector<Config> commsir::tune::estimateAll(const ConfigQuery &query) {
  std::vector<Config> configs;
  auto pairs = listPairs(query);
  auto lock = Types::lock();
  for (const auto &[algorithm, protocol] : pairs) {
    std::optional<Pair> pair = makePair(query, algorithm, protocol);
    if (!pair)
      continue;
    Recipe recipe = suggest(query, *pair);
    Config config = applyRecipe(recipe, query);
    config.microseconds = estimatePair(*pair, query, recipe);
    configs.push_back(std::move(config));
  }
  llvm::sort(configs, isFaster);
  return configs;
}
