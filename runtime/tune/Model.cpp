//===- Model.cpp - What a way should cost ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Model.h"

#include "lowering/Algorithm.h"
#include "lowering/Problem.h"
#include "lowering/Protocol.h"

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
// What is known of protocols and grids
//===----------------------------------------------------------------------===//

namespace {
struct ProtocolRow {
  llvm::StringLiteral name;
  /// Microseconds from a send to when the peer has it, on GPUs and in the CPU
  /// world; 0: only by name, and by a table of the same device.
  double gpu, cpu;
};
} // namespace

/// Measured on NVLink with all-reduces of 1 KiB: less launch and loop.
static constexpr ProtocolRow kProtocols[] = {
    {"lamport", 1.0, 0}, // one store of the data alone; one poll
    {"ll", 1.2, 1.0},    // data and flag in one store; one poll
    {"ll128", 0, 0},     // by table: it rests on what NVLink does
    {"pull", 3.0, 3.0},  // a barrier, and a load that crosses the link
    {"push", 2.0, 0},    // stores, then a signal that is waited for
};
static constexpr double kUnknownProtocol = 2.5;

/// From the launch of a kernel to its first instruction, in a graph of kernels
/// that overlap, and what a kernel does before it sends.
static constexpr double kLaunch = 1.0;
/// What each further tile of a block costs, for its loop and its poll.
static constexpr double kTile = 0.12;
/// Bytes from which a message is limited by the links, not by latency.
static constexpr int64_t kLarge = 8 << 20;

/// Share of the time on the links that is saved by ranks that send to one peer
/// at a time, in phase.
static constexpr double kInPhase = 0.15;

static double getHop(llvm::StringRef protocol, bool cpu) {
  for (const ProtocolRow &row : kProtocols)
    if (row.name == protocol)
      return cpu ? row.cpu : row.gpu;
  return cpu ? 0 : kUnknownProtocol;
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

/// What algorithms may ask of a collective; nothing when there is no such op
/// or type.
static std::optional<comms::Problem> makeProblem(const Question &question) {
  const comms::CollectiveKind *kind = comms::findCollectiveKind(question.op);
  mlir::Type type = Types::parse(question.elementType);
  if (!kind || !type || !type.isIntOrFloat() || question.ranks < 1)
    return std::nullopt;
  comms::Problem problem;
  problem.kind = kind;
  problem.ranks = question.ranks;
  problem.dest = question.ranks - 1;
  problem.windows = question.windows;
  if (kind->reduces)
    problem.reduction = comms::symbolizeReductionKind(question.reduction)
                            .value_or(comms::ReductionKind::Sum);
  int64_t bits = std::max<int64_t>(type.getIntOrFloatBitWidth(), 1);
  problem.flat = question.rows <= 0;
  int64_t elements = std::max<int64_t>(question.bytes * 8 / bits, 1);
  if (kind->movement == comms::Movement::Exchange)
    elements = std::max<int64_t>(elements / question.ranks, 1);
  problem.partElements = elements;
  problem.tiles =
      problem.flat ? std::max<int64_t>(elements / 1024, 1) : question.rows;
  problem.tileSize = std::max<int64_t>(elements / problem.tiles, 1);
  problem.wires.push_back({type, problem.tileSize});
  return problem;
}

static bool canTravel(const comms::Protocol &protocol,
                      const comms::Problem &problem) {
  std::string why;
  return llvm::all_of(problem.wires, [&](const comms::WireTile &wire) {
    bool reducing = problem.reduction.has_value();
    return protocol.supports(wire.elementType, reducing, why) &&
           protocol.supports(comms::getPartialType(wire.elementType), reducing,
                             why) &&
           (problem.flat ||
            wire.length % protocol.getTileStep(wire.elementType) == 0);
  });
}

std::vector<std::pair<std::string, std::string>>
commsir::tune::listPairs(const Question &question, bool everything) {
  auto lock = Types::lock();
  std::vector<std::pair<std::string, std::string>> pairs;
  std::optional<comms::Problem> problem = makeProblem(question);
  if (!problem)
    return pairs;
  bool cpu = question.chip == "cpu";
  for (const comms::Algorithm *algorithm : comms::getAlgorithms()) {
    std::string why;
    if ((!question.algorithm.empty() &&
         question.algorithm != algorithm->name) ||
        !algorithm->supports(*problem, why))
      continue;
    for (const comms::Protocol *protocol : comms::getProtocols()) {
      bool named = question.protocol == protocol->name;
      bool open = question.protocol.empty() &&
                  (everything || getHop(protocol->name, cpu) > 0);
      if ((named || open) && canTravel(*protocol, *problem))
        pairs.push_back({algorithm->name.str(), protocol->name.str()});
    }
  }
  return pairs;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// A row on as many CTAs of 128 threads as give each thread 16 bytes, if all
/// rows are on the GPU at a time then; else on one CTA.
static void shapeRows(const Question &question, Recipe &recipe) {
  int64_t vectors = std::max<int64_t>(
      llvm::divideCeil(question.bytes / question.rows, 16), 32);
  int64_t ctas =
      std::min<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(vectors, 128)), 8);
  recipe.spread = 1;
  if (question.rows * ctas <= countResident(question, 128)) {
    recipe.cluster = ctas;
    recipe.threads = std::min<int64_t>(
        llvm::PowerOf2Ceil(llvm::divideCeil(vectors, ctas)), 128);
  } else {
    recipe.cluster = 1;
    recipe.threads = std::min<int64_t>(llvm::PowerOf2Ceil(vectors), 1024);
  }
  recipe.limit = countResident(question, recipe.threads);
}

Recipe commsir::tune::suggestRecipe(const Question &question,
                                    llvm::StringRef algorithm,
                                    llvm::StringRef protocol) {
  Recipe recipe;
  recipe.algorithm = algorithm.str();
  recipe.protocol = protocol.str();
  if (question.chip == "cpu")
    return recipe;
  if (question.rows > 0) {
    shapeRows(question, recipe);
    return recipe;
  }
  bool permutes = algorithm == "permutation";
  bool large = question.bytes >= kLarge;
  recipe.threads = permutes && large ? 1024 : large ? 512 : 128;
  // In two steps every rank works on its share of the tiles.
  recipe.spread = algorithm == "one_shot" ? 1 : question.ranks;
  recipe.limit = permutes && large
                     ? std::min<int64_t>(128, countMultiprocessors(question))
                     : countResident(question, recipe.threads);
  return recipe;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

std::optional<double> commsir::tune::estimate(const Question &question,
                                              const Recipe &recipe) {
  auto lock = Types::lock();
  std::optional<comms::Problem> problem = makeProblem(question);
  const comms::Algorithm *algorithm = comms::findAlgorithm(recipe.algorithm);
  const comms::Protocol *protocol = comms::findProtocol(recipe.protocol);
  std::string why;
  if (!problem || !algorithm || !protocol ||
      !algorithm->supports(*problem, why) || !canTravel(*protocol, *problem))
    return std::nullopt;
  bool cpu = question.chip == "cpu";
  double hop = getHop(protocol->name, cpu);
  problem->hop = hop > 0 ? hop : 1.0;
  problem->overhead =
      std::max(1.0, protocol->overhead(problem->wires.front().elementType));
  double time = algorithm->cost(*problem);
  if (cpu)
    return time;
  problem->hop = 0;
  double wires = algorithm->cost(*problem);
  if (algorithm->name == "permutation" && question.bytes >= kLarge)
    time -= wires * kInPhase;
  Way way = applyRecipe(recipe, question);
  int64_t rounds = llvm::divideCeil(
      countTiles(question, way.threads, way.cluster), way.blocks);
  // While the links are busy, loops cost nothing.
  double loops = kTile * double(rounds - 1);
  time += kLaunch + std::max(0.0, loops - wires);
  // Threads that start and meet.
  time +=
      0.1 * double(way.threads) / 128 + 0.05 * std::log2(double(way.cluster));
  return time;
}

std::vector<Way> commsir::tune::estimateAll(const Question &question) {
  std::vector<Way> ways;
  for (const auto &[algorithm, protocol] : listPairs(question)) {
    Recipe recipe = suggestRecipe(question, algorithm, protocol);
    std::optional<double> time = estimate(question, recipe);
    if (!time)
      continue;
    Way way = applyRecipe(recipe, question);
    way.microseconds = *time;
    ways.push_back(std::move(way));
  }
  llvm::sort(ways, isFaster);
  return ways;
}
