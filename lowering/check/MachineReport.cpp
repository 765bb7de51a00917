//===- MachineReport.cpp - Errors and what they name ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

/// More errors than this are not shown.
static constexpr unsigned maxErrors = 20;

std::optional<InFlightDiagnostic> Machine::report(const Action &action) {
  return report(action.op);
}

/// One error for each op: a second one would most often follow from the first.
std::optional<InFlightDiagnostic> Machine::report(Operation *op) {
  if (!reported.insert(op).second || ++errors > maxErrors)
    return std::nullopt;
  return op->emitOpError();
}

std::optional<InFlightDiagnostic> Machine::reportRange(const Action &action) {
  if (!shape.model)
    return report(action);
  leavesRange = true;
  return std::nullopt;
}

void Machine::reportOvertaking(const Thread &thread, const Action &action,
                               const Touch &write, llvm::StringRef what) {
  auto diag = report(action);
  if (!diag)
    return;
  *diag << what << " on " << when(thread)
        << ", which has observed the write by " << name(write.stamp.thread)
        << " in launch " << write.launch
        << " through relaxed ops only: that write may come last";
  diag->attachNote(program.actions[write.action].op->getLoc())
      << "the earlier write";
  noteChain(*diag, thread, write.stamp);
}

void Machine::noteChain(InFlightDiagnostic &diag, const Thread &thread,
                        Timestamp write) const {
  SmallVector<std::pair<int32_t, const Heard *>> chain;
  int32_t at = thread.id;
  // What was heard long ago has been forgotten: there the chain begins.
  while (at >= 0 && at != write.thread) {
    auto first = llvm::find_if(heard[at], [&](const Heard &one) {
      bool isBefore = chain.empty() ||
                      clocks.tells(chain.back().second->message, one.moment);
      return isBefore && clocks.tells(one.message, write);
    });
    if (first == heard[at].end())
      break;
    chain.emplace_back(at, &*first);
    at = first->sender;
  }
  for (auto [listener, one] : llvm::reverse(chain))
    diag.attachNote(program.actions[one->action].op->getLoc())
        << name(listener) << " observes it here in launch " << one->launch
        << (one->sender < 0 ? "" : ", from " + name(one->sender));
  diag.attachNote()
      << "put comms.fence acq_rel sys before each signal, packet or poison of "
         "the chain and before the last write, or use signals and waits of "
         "order release and acquire; or state the assumption "
         "packets_cumulative on the kernel (comms.assumes) if a fence follows "
         "the earlier write";
}

std::string Machine::name(int32_t thread) const {
  const Thread &one = threads[ownerOf(thread)];
  return formatv("rank {0} block {1}", one.rank, one.block);
}

std::string Machine::when(const Thread &thread) const {
  return formatv("{0} in launch {1}", name(thread.id), thread.launch);
}

std::string Machine::cellName(const Cell &cell) const {
  const ArgumentPlan &argument = program.arguments[cell.argument];
  return formatv("{0} {1}[{2}] of rank {3}",
                 argument.isCounter ? "counter" : "signal", argument.name,
                 cell.index, cell.rank);
}

std::string Machine::placeName(int32_t argument, int64_t rank,
                               Bounds bounds) const {
  return formatv("[{0}, {1}) of '{2}' at rank {3}", bounds.begin, bounds.end,
                 program.arguments[argument].name, rank);
}

const Action &Machine::waitsAt(int32_t thread) const {
  return program.actions[program.code[threads[thread].pc].extra];
}

UnprovenReason &Machine::noteUnproven(Operation *op, const llvm::Twine &text,
                                      llvm::StringRef note, Operation *other) {
  std::string said = text.str();
  for (UnprovenReason &old : unproven)
    if (old.op == op && old.text == said)
      return old;
  UnprovenReason &made = unproven.emplace_back();
  made.op = op;
  made.text = std::move(said);
  if (!note.empty())
    made.notes.emplace_back(other, note.str());
  return made;
}
