//===- ChooseKernel.cpp - The choice for a kernel's collectives -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/ChooseKernel.h"

#include "dialect/TileCuts.h"
#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveInfo.h"
#include "runtime/choose/ChannelMemory.h"

#include "mlir/IR/Diagnostics.h"

using namespace commsir;
using namespace commsir::tune;
namespace comms = mlir::comms;

/// Sizes and types of a collective as tables count them.
static void describe(const comms::CollectiveInfo &problem, ConfigQuery &query) {
  query.op = problem.kind->name.str();
  query.reduction =
      problem.reduction
          ? comms::stringifyReductionKind(*problem.reduction).str()
          : "";
  const comms::TileArray &input = problem.inputs.front();
  query.elementType.clear();
  llvm::raw_string_ostream(query.elementType) << input.elementType;
  int64_t bits = input.elementType.isIntOrFloat()
                     ? input.elementType.getIntOrFloatBitWidth()
                     : 64;
  int64_t parts =
      problem.kind->movement == comms::Movement::Exchange ? problem.ranks : 1;
  query.bytes = problem.partElements * parts * bits / 8;
  query.windows = problem.storesToPeers();
  query.ranks = problem.ranks;
  if (problem.flat || input.tileLength <= 0)
    return;
  query.columns = input.tileLength;
  query.rows = problem.partElements / input.tileLength;
}

static std::string getName(mlir::Operation *op, llvm::StringRef attribute) {
  auto name = op->getAttrOfType<mlir::StringAttr>(attribute);
  return name ? name.getValue().str() : "";
}

/// Whether the algorithm of a way carries out the collective; one that is left
/// to the compiler does.
static bool isUsable(const comms::CollectiveInfo &problem,
                     const Config &config) {
  const comms::Algorithm *algorithm = comms::findAlgorithm(config.algorithm);
  std::string why;
  return !algorithm || algorithm->supports(problem, why);
}

/// Threads of a CTA that multiplies matrices: the sums of a tile of 128 by 256
/// fill their registers.
static constexpr int64_t kContractThreads = 256;

template <typename OpT>
static bool holds(comms::KernelOp kernel) {
  return kernel.walk([](OpT) { return mlir::WalkResult::interrupt(); })
      .wasInterrupted();
}

static bool cutsTiles(comms::KernelOp kernel) {
  return kernel
      .walk([](mlir::Operation *op) {
        return comms::isTileCut(op) ? mlir::WalkResult::interrupt()
                                    : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

KernelConfigs commsir::tune::chooseForKernel(comms::KernelOp kernel,
                                             const ConfigQuery &wish) {
  KernelConfigs result;
  std::optional<int64_t> ownRanks = kernel.getRanks();
  if (!ownRanks && wish.ranks > 0)
    kernel.setRanks(wish.ranks);
  // What is wrong is said by the pass that meets it.
  mlir::ScopedDiagnosticHandler quiet(
      kernel.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  bool roles = false;
  // It is memory of one CTA, through which parts of tiles pass.
  bool scratch = holds<comms::ScratchOp>(kernel) || cutsTiles(kernel);
  if (holds<comms::ContractOp>(kernel)) {
    result.threads = wish.threads ? wish.threads : kContractThreads;
    result.cluster = 1;
  }
  int64_t most = -1;
  mlir::OpBuilder builder(kernel.getContext());
  // What the kernel's own channels and its collectives so far take.
  auto taken = uint64_t(comms::countChannelBytes(kernel));
  kernel.walk([&](mlir::Operation *op) {
    roles |= mlir::isa<comms::RoleOp>(op);
    if (!comms::getCollectiveKind(op))
      return;
    auto problem = comms::readCollective(op);
    if (mlir::failed(problem) || problem->inputs.empty())
      return;
    ConfigQuery query = wish;
    describe(*problem, query);
    if (kernel.getBlocks())
      query.blocks = *kernel.getBlocks();
    if ((scratch || result.cluster) && !query.cluster)
      query.cluster = 1;
    if (!query.threads)
      query.threads = result.threads;
    if (query.algorithm.empty())
      query.algorithm = getName(op, "algorithm");
    if (query.protocol.empty())
      query.protocol = getName(op, "protocol");
    if (wish.memory)
      query.memory = wish.memory > taken ? wish.memory - taken : 1;
    query.channels = [&](const Config &config) {
      return countChannels(kernel, op, config);
    };
    ConfigChoice answer = choose(query);
    if (problem->isSized() && !isUsable(*problem, answer.config)) {
      for (llvm::StringRef algorithm : getExtentAlgorithms()) {
        Config config;
        config.algorithm = algorithm.str();
        if (isUsable(*problem, config)) {
          query.algorithm = config.algorithm;
          break;
        }
      }
      answer = choose(query);
    }
    if (wish.memory && boundChannels(query) > wish.memory)
      taken += query.channels(answer.config).value_or(0);
    query.channels = nullptr; // It refers to the kernel as it was.
    for (auto [attribute, name] :
         {std::pair("algorithm", &answer.config.algorithm),
          {"protocol", &answer.config.protocol}})
      if (!name->empty() && !op->hasAttr(attribute))
        op->setAttr(attribute, builder.getStringAttr(*name));
    if (query.bytes > most) {
      most = query.bytes;
      result.blocks = answer.config.blocks;
      result.threads = answer.config.threads;
      result.cluster = answer.config.cluster;
    }
    result.collectives.push_back({std::move(query), std::move(answer)});
  });
  // Roles share the blocks out among themselves: the choice knows nothing of
  // it.
  if (roles)
    result.blocks = wish.blocks;
  if (!ownRanks)
    kernel.removeRanksAttr();
  return result;
}
