//===- Verdict.cpp - The checker's verdict on a kernel --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Verdict.h"

#include "dialect/Assumptions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

//===----------------------------------------------------------------------===//
// What is left open
//===----------------------------------------------------------------------===//

/// "file:line:column: ", where that is known.
static std::string placeOf(Operation *op) {
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place)
    return {};
  return place.getFilename().str() + ":" + std::to_string(place.getLine()) +
         ":" + std::to_string(place.getColumn()) + ": ";
}

void Verdict::leaveOpen(const UnprovenReason &reason, bool isWarning) {
  std::string text = placeOf(reason.op) + "'" +
                     reason.op->getName().getStringRef().str() + "' op " +
                     reason.text;
  if (llvm::is_contained(reasons, text))
    return;
  InFlightDiagnostic diag =
      isWarning ? reason.op->emitWarning() : reason.op->emitRemark();
  diag << "not decided: '" << reason.op->getName() << "' op " << reason.text;
  for (const auto &[op, note] : reason.notes)
    if (op)
      diag.attachNote(op->getLoc()) << note;
    else
      diag.attachNote() << note;
  reasons.push_back(std::move(text));
}

void Verdict::leaveOpen(Operation *op, const llvm::Twine &reason,
                        bool isWarning) {
  std::string text = reason.str();
  if (llvm::is_contained(reasons, text))
    return;
  (isWarning ? op->emitWarning() : op->emitRemark()) << text;
  reasons.push_back(std::move(text));
}

DictionaryAttr Verdict::toAttribute(MLIRContext *context) const {
  Builder builder(context);
  auto number = [&](llvm::StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto list = [&](llvm::StringRef name, llvm::ArrayRef<std::string> texts) {
    SmallVector<llvm::StringRef> parts(texts.begin(), texts.end());
    return builder.getNamedAttr(name, builder.getStrArrayAttr(parts));
  };
  SmallVector<NamedAttribute> entries = {
      builder.getNamedAttr(
          "verdict",
          builder.getStringAttr(isProven() ? "proven" : "not decided")),
      number("ranks", ranks),
      number("followed_ranks", followedRanks),
      number("blocks", blocks),
      number("launches", launches),
      list("assumptions", assumptions),
      list("reasons", reasons)};
  if (blockClasses > 0)
    entries.push_back(number("block_classes", blockClasses));
  if (!computes.empty())
    entries.push_back(list("computes", computes));
  if (!computed.empty())
    entries.push_back(list("computed", computed));
  return builder.getDictionaryAttr(entries);
}

//===----------------------------------------------------------------------===//
// What is taken for granted
//===----------------------------------------------------------------------===//

/// Whether two arguments that are one array could meet: a tensor may be given
/// to a kernel twice.
static bool couldOverlap(const Program &program, const WorldShape &shape) {
  auto isOpen = [&](const ArgumentPlan &plan) {
    return (plan.hasData || plan.hasMail) &&
           (plan.shared || shape.blocks > 1 || shape.ranks > 1);
  };
  KernelOp kernel = program.kernel;
  auto types = kernel.getFunctionType().getInputs();
  for (auto [at, a] : llvm::enumerate(program.arguments))
    for (size_t other = 0; other < at; ++other) {
      const ArgumentPlan &b = program.arguments[other];
      bool isOwn = !a.shared && !b.shared;
      if (types[at] == types[other] && isOpen(a) && isOpen(b) &&
          (a.written || b.written) && !(isOwn && shape.blocks == 1))
        return true;
    }
  return false;
}

namespace {
/// Ops that touch one memory, by proxy.
struct ProxyUse {
  Operation *generic = nullptr, *genericWrite = nullptr;
  Operation *alias = nullptr, *aliasWrite = nullptr;
  /// A bulk copy that reads it.
  Operation *async = nullptr;
};
} // namespace

std::vector<UnprovenReason>
mlir::comms::check::findUnfencedProxies(const Program &program) {
  // Arguments by number, scratch memory by -1 - its number.
  llvm::MapVector<int64_t, ProxyUse> uses;
  bool fencesAlias = false, fencesAsync = false;
  for (const Action &action : program.actions) {
    if (auto fence = dyn_cast<FenceOp>(action.op)) {
      fencesAlias |= fence.getProxy() == Proxy::Alias;
      fencesAsync |= fence.getProxy() == Proxy::Async;
    }
    for (const RangePlan &range : action.ranges) {
      const MemoryPlan &memory = range.memory;
      if (!range.used || memory.kind == MemoryPlan::Unknown)
        continue;
      ProxyUse &use =
          uses[memory.kind == MemoryPlan::Scratch ? -1 - int64_t(memory.scratch)
                                                  : memory.argument];
      if (action.kind == ActionKind::BulkCopy) {
        if (!range.write)
          use.async = action.op;
      } else if (memory.kind == MemoryPlan::Multimem) {
        (range.write ? use.aliasWrite : use.alias) = action.op;
      } else if (action.kind != ActionKind::EngineCopy) {
        (range.write ? use.genericWrite : use.generic) = action.op;
      }
    }
  }
  std::vector<UnprovenReason> unproven;
  auto add = [&](Operation *op, const char *text, Operation *other,
                 const char *hint) {
    unproven.push_back(
        {op, text, {{other, "the other access"}, {nullptr, hint}}, false});
  };
  for (const auto &[memory, use] : uses) {
    Operation *alias = use.aliasWrite     ? use.aliasWrite
                       : use.genericWrite ? use.alias
                                          : nullptr;
    Operation *generic = use.genericWrite ? use.genericWrite : use.generic;
    if (alias && generic && !fencesAlias)
      add(alias,
          "reaches memory through its multicast address that others reach "
          "without it, and no fence of the kernel names the alias proxy (M11)",
          generic, "put comms.fence acq_rel sys proxy alias between them");
    if (use.async && use.genericWrite && !fencesAsync)
      add(use.async,
          "reads through the async proxy what was stored without it, and no "
          "fence of the kernel names that proxy (M11)",
          use.genericWrite,
          "put a comms.fence of proxy async between them, in the block that "
          "copies");
  }
  return unproven;
}

std::vector<std::string>
mlir::comms::check::findAssumptions(const Program &program,
                                    const WorldShape &shape) {
  llvm::SetVector<llvm::StringRef> found;
  if (program.synchronizes)
    found.insert("launch_is_fence");
  bool usesProxies = false;
  for (const Action &action : program.actions) {
    if (action.kind == ActionKind::PacketStore ||
        action.kind == ActionKind::PacketLoad)
      found.insert(stringifyAssumption(action.assumes));
    usesProxies |= action.kind == ActionKind::BulkCopy;
    for (const RangePlan &range : action.ranges)
      usesProxies |= range.used && range.memory.kind == MemoryPlan::Multimem;
  }
  if (usesProxies)
    found.insert("proxies_are_fenced");
  for (const ChannelPlan &channel : program.channels)
    if (channel.countsAgree)
      found.insert("counts_agree");
  for (const Guard &guard : program.guards)
    if (isa<scf::WhileOp>(guard.op) && !guard.sync)
      found.insert("loops_end");
  if (llvm::any_of(program.arguments, [](const ArgumentPlan &plan) {
        return plan.shared && !plan.host && !plan.written;
      }))
    found.insert("host_waits");
  if (couldOverlap(program, shape))
    found.insert("arguments_apart");
  std::vector<std::string> names;
  for (llvm::StringRef name : found)
    names.push_back(name.str());
  for (const ArgumentPlan &plan : program.arguments)
    if (plan.isSame && plan.isRead)
      names.push_back(sameOnRanks(plan.name));
  return names;
}
