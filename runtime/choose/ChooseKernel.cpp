//===- ChooseKernel.cpp - The choice for a kernel's collectives -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/ChooseKernel.h"

#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveInfo.h"
#include "runtime/choose/ChannelMemory.h"

#include "mlir/IR/Diagnostics.h"

using namespace commsir;
using namespace commsir::tune;
namespace comms = mlir::comms;

/// Sizes and types of a collective as tables count them.
static void describe(const comms::CollectiveInfo &problem, Question &question) {
  question.op = problem.kind->name.str();
  question.reduction =
      problem.reduction
          ? comms::stringifyReductionKind(*problem.reduction).str()
          : "";
  const comms::TileArray &input = problem.inputs.front();
  question.elementType.clear();
  llvm::raw_string_ostream(question.elementType) << input.elementType;
  int64_t bits = input.elementType.isIntOrFloat()
                     ? input.elementType.getIntOrFloatBitWidth()
                     : 64;
  int64_t parts =
      problem.kind->movement == comms::Movement::Exchange ? problem.ranks : 1;
  question.bytes = problem.partElements * parts * bits / 8;
  question.windows = problem.storesToPeers();
  question.ranks = problem.ranks;
  if (problem.flat || input.tileLength <= 0)
    return;
  question.columns = input.tileLength;
  question.rows = problem.partElements / input.tileLength;
}

static std::string getName(mlir::Operation *op, llvm::StringRef attribute) {
  auto name = op->getAttrOfType<mlir::StringAttr>(attribute);
  return name ? name.getValue().str() : "";
}

/// Whether the algorithm of a way carries out the collective; one that is left
/// to the compiler does.
static bool isUsable(const comms::CollectiveInfo &problem, const Config &way) {
  const comms::Algorithm *algorithm = comms::findAlgorithm(way.algorithm);
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

KernelAnswer commsir::tune::chooseForKernel(comms::KernelOp kernel,
                                            const Question &wish) {
  KernelAnswer result;
  std::optional<int64_t> ownRanks = kernel.getRanks();
  if (!ownRanks && wish.ranks > 0)
    kernel.setRanks(wish.ranks);
  // What is wrong is said by the pass that meets it.
  mlir::ScopedDiagnosticHandler quiet(
      kernel.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  bool roles = false;
  // It is memory of one CTA.
  bool scratch = holds<comms::ScratchOp>(kernel);
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
    Question question = wish;
    describe(*problem, question);
    if (kernel.getBlocks())
      question.blocks = *kernel.getBlocks();
    if ((scratch || result.cluster) && !question.cluster)
      question.cluster = 1;
    if (!question.threads)
      question.threads = result.threads;
    if (question.algorithm.empty())
      question.algorithm = getName(op, "algorithm");
    if (question.protocol.empty())
      question.protocol = getName(op, "protocol");
    if (wish.memory)
      question.memory = wish.memory > taken ? wish.memory - taken : 1;
    question.channels = [&](const Config &way) {
      return countChannels(kernel, op, way);
    };
    Answer answer = choose(question);
    if (problem->isSized() && !isUsable(*problem, answer.way)) {
      for (llvm::StringRef algorithm : getExtentAlgorithms())
        if (isUsable(*problem, {.algorithm = algorithm.str()})) {
          question.algorithm = algorithm.str();
          break;
        }
      answer = choose(question);
    }
    if (wish.memory && boundChannels(question) > wish.memory)
      taken += question.channels(answer.way).value_or(0);
    question.channels = nullptr; // It refers to the kernel as it was.
    for (auto [attribute, name] :
         {std::pair("algorithm", &answer.way.algorithm),
          {"protocol", &answer.way.protocol}})
      if (!name->empty() && !op->hasAttr(attribute))
        op->setAttr(attribute, builder.getStringAttr(*name));
    if (question.bytes > most) {
      most = question.bytes;
      result.blocks = answer.way.blocks;
      result.threads = answer.way.threads;
      result.cluster = answer.way.cluster;
    }
    result.collectives.push_back({std::move(question), std::move(answer)});
  });
  // Roles share the blocks out among themselves: the choice knows nothing of
  // it.
  if (roles)
    result.blocks = wish.blocks;
  if (!ownRanks)
    kernel.removeRanksAttr();
  return result;
}
