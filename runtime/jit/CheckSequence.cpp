//===- CheckSequence.cpp - The checker on launches of several kernels -----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/CheckSequence.h"

#include "lowering/Passes.h"
#include "lowering/Pipelines.h"
#include "lowering/analysis/Attributes.h"
#include "lowering/check/Sequence.h"
#include "runtime/jit/Prepare.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace commsir::jit;
namespace comms = mlir::comms;
namespace check = mlir::comms::check;

/// Orders that are followed one by one, at most.
static constexpr int64_t maxOrders = 4096;
/// The most launches of an order, as of one kernel.
static constexpr int64_t maxLaunches = 64;
/// An order that repeats is followed so many times.
static constexpr int64_t minCycles = 3;

namespace {

class SequenceChecker {
public:
  SequenceChecker(mlir::ModuleOp module, const SequenceOptions &options,
                  check::Sequence sequence)
      : module(module), options(options), sequence(std::move(sequence)) {}
  Expected<SequenceProof> check();

private:
  Error prepare();
  Error followAnyOrder();
  Error follow(ArrayRef<check::Turn> turns, int64_t launches);
  void merge(const ProofInfo &one);
  void emit(mlir::Diagnostic &said, ArrayRef<check::Turn> turns);
  Error fail(const Twine &message) const {
    return failCompilation(CompileError::Stage::Input, message);
  }
  std::string list(ArrayRef<check::Turn> turns) const {
    return join(map_range(turns, [](const check::Turn &t) { return t.text; }),
                ", ");
  }

  mlir::ModuleOp module;
  const SequenceOptions &options;
  const check::Sequence sequence;
  SequenceProof found;
  std::string digest;
  StringSet<> remarks;
};

} // namespace

/// The kernels as the memory operations that they become.
Error SequenceChecker::prepare() {
  auto kernels = check::findKernels(module, sequence);
  if (mlir::failed(kernels))
    return fail("the order of launches does not fit the kernels");
  for (comms::KernelOp kernel :
       make_early_inc_range(module.getOps<comms::KernelOp>()))
    if (!is_contained(*kernels, kernel))
      kernel.erase();
  for (comms::KernelOp kernel : *kernels) {
    if (Error error = setWorld(kernel, options.ranks, options.blocks))
      return error;
    found.kernels +=
        (found.kernels.empty() ? "" : ", ") + kernel.getSymName().str();
  }
  Expected<std::string> bytecode = makeBytecode(module);
  if (!bytecode)
    return bytecode.takeError();
  digest = digestOf(*bytecode);
  comms::CommsToCPUOptions pipeline;
  pipeline.ranks = options.ranks;
  pipeline.blocks = options.blocks;
  pipeline.algorithm = options.algorithm;
  pipeline.protocol = options.protocol;
  return runPipeline(module, [&](mlir::OpPassManager &manager) {
    comms::buildCommsToMemory(manager, pipeline);
  });
}

/// Follows the launches `turns` on a module of their own.
Error SequenceChecker::follow(ArrayRef<check::Turn> turns, int64_t launches) {
  auto joined = check::joinKernels(module, sequence, turns, options.blocks);
  if (mlir::failed(joined))
    return fail("the kernels cannot be followed in turn");
  mlir::OwningOpRef<mlir::ModuleOp> world =
      mlir::ModuleOp::create(module.getLoc());
  (*joined)->moveBefore(world->getBody(), world->getBody()->end());
  std::vector<mlir::Diagnostic> said;
  Error error = Error::success();
  {
    mlir::ScopedDiagnosticHandler handler(
        module.getContext(), [&](mlir::Diagnostic &diagnostic) {
          said.push_back(std::move(diagnostic));
          return mlir::success();
        });
    error = runPipeline(*world, [&](mlir::OpPassManager &manager) {
      comms::CheckSyncOptions pass;
      pass.ranks = options.ranks;
      pass.launches = launches;
      pass.runLaunches =
          std::min<int64_t>(maxLaunches, minCycles * turns.size());
      pass.maxEvents = options.checkEvents;
      manager.nest<comms::KernelOp>().addPass(comms::createCheckSync(pass));
    });
  }
  for (mlir::Diagnostic &diagnostic : said)
    emit(diagnostic, turns);
  if (error)
    return error;
  merge(readProof((*joined)->getAttrOfType<mlir::DictionaryAttr>(
      comms::target::kProofAttr)));
  return Error::success();
}

/// What was said of a joined kernel, in terms of the kernels. What several
/// orders say alike is said once.
void SequenceChecker::emit(mlir::Diagnostic &said,
                           ArrayRef<check::Turn> turns) {
  bool isError = said.getSeverity() == mlir::DiagnosticSeverity::Error;
  std::string text = said.str();
  if (!isError && !remarks.insert(text).second)
    return;
  // An access of the host is a copy in the kernel that was followed.
  StringRef rest = text;
  if (rest.consume_front("'memref.copy' op ") &&
      mlir::isa<mlir::NameLoc>(said.getLocation()))
    text = "the host " + rest.str();
  mlir::InFlightDiagnostic out = module.getContext()->getDiagEngine().emit(
      said.getLocation(), said.getSeverity());
  out << text;
  for (mlir::Diagnostic &note : said.getNotes())
    out.attachNote(note.getLocation()) << note.str();
  if (!isError)
    return;
  std::string order;
  for (auto [at, turn] : enumerate(turns))
    order += (at ? ", " : "") + std::to_string(at + 1) + ": " + turn.text;
  out.attachNote() << "the launches of a rank are " << order
                   << (sequence.isAnyOrder || turns.size() == 1
                           ? ""
                           : ", and so on");
}

void SequenceChecker::merge(const ProofInfo &one) {
  ProofInfo &all = found.proof;
  if (all.verdict.empty()) {
    all = one;
    return;
  }
  if (one.verdict != "proven")
    all.verdict = one.verdict;
  all.ranks = std::min(all.ranks, one.ranks);
  all.followedRanks = std::min(all.followedRanks, one.followedRanks);
  all.launches = std::min(all.launches, one.launches);
  auto add = [](std::vector<std::string> &to,
                const std::vector<std::string> &from) {
    for (const std::string &text : from)
      if (!is_contained(to, text))
        to.push_back(text);
  };
  add(all.assumptions, one.assumptions);
  add(all.reasons, one.reasons);
}

/// Every order of as many launches as show what one does to another.
Error SequenceChecker::followAnyOrder() {
  auto wanted = check::countLaunches(module, sequence, options.blocks);
  if (mlir::failed(wanted))
    return fail("the kernels cannot be followed in turn");
  auto choices = static_cast<int64_t>(sequence.turns.size());
  int64_t all =
      options.launches ? options.launches : wanted->value_or(maxLaunches);
  int64_t length = 0, orders = 1;
  while (length < std::min(all, maxLaunches) && orders * choices <= maxOrders) {
    orders *= choices;
    ++length;
  }
  std::vector<check::Turn> turns(length);
  for (int64_t order = 0; order < orders; ++order) {
    int64_t rest = order;
    for (int64_t at = length - 1; at >= 0; --at, rest /= choices)
      turns[at] = sequence.turns[rest % choices];
    if (Error error = follow(turns, length))
      return error;
  }
  found.order = "every order of " + std::to_string(length) + " launches of " +
                list(sequence.turns);
  ProofInfo &proof = found.proof;
  if (*wanted && length >= **wanted)
    return Error::success();
  proof.verdict = "not decided";
  proof.reasons.push_back(
      "orders of " + std::to_string(length) + " launches were followed; " +
      (*wanted ? std::to_string(**wanted) +
                     " show all reuse: give the orders that occur, or fewer "
                     "kernels"
               : std::string("a kernel uses the number of its launch in a way "
                             "that is not known to repeat")));
  return Error::success();
}

Expected<SequenceProof> SequenceChecker::check() {
  if (Error error = prepare())
    return std::move(error);
  Error error = sequence.isAnyOrder ? followAnyOrder()
                                    : follow(sequence.turns, options.launches);
  if (error)
    return std::move(error);
  if (!sequence.isAnyOrder)
    found.order = list(sequence.turns) + ", again and again";
  found.proof.digest = digest;
  bool isProven = found.proof.verdict == "proven";
  if (isProven || !(options.requireProof || comms::requiresProof()))
    return found;
  mlir::InFlightDiagnostic diagnostic = module.emitError(
      "the launches of " + found.kernels +
      " are not proven, and a proof is required (COMMSIR_REQUIRE_PROOF; "
      "comms-run: --require-proof)");
  for (const std::string &reason : found.proof.reasons)
    diagnostic.attachNote() << reason;
  diagnostic.report();
  return failCompilation(CompileError::Stage::Checker,
                         "the checker refused the kernels");
}

Expected<SequenceProof>
commsir::jit::checkSequence(mlir::ModuleOp module,
                            const SequenceOptions &options) {
  auto sequence = check::parseSequence(options.order);
  if (!sequence)
    return failCompilation(CompileError::Stage::Input,
                           toString(sequence.takeError()));
  return SequenceChecker(module, options, std::move(*sequence)).check();
}
