//===- MachineRaces.cpp - Compares accesses to one place ------------------===//
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

/// How often a block has written there in its launch, with what it does now. A
/// transfer is touched twice, and counts once.
static int32_t countWrites(const Shadow::Piece &piece, const Touch &now,
                           bool transfers) {
  for (const Touch &old : piece.reads)
    if (old.access == Touch::Alike && old.launch == now.launch &&
        old.stamp.thread == now.stamp.thread)
      return old.version +
             (now.writes && !(transfers && old.action == now.action));
  return now.writes;
}

/// Whether a block reads what it has written itself in this launch, and another
/// writes that once more. What a block writes there later is not the same.
static bool isOwnValue(const Touch &read, const Touch &write) {
  return !read.writes && write.access == Touch::Alike && read.version > 0 &&
         read.launch == write.launch && read.version == write.version;
}

/// Whether the op has an offset there, which could be bounded.
static bool isPlacedByData(const Action &action, int32_t argument) {
  return llvm::any_of(action.ranges, [&](const RangePlan &range) {
    return range.used && range.memory.argument == argument && range.offset >= 0;
  });
}

/// One access to a part: compares it with those before, and records it.
class Machine::PartAccess {
public:
  PartAccess(Machine &machine, Thread &thread, int32_t index, int32_t argument,
             int64_t rank, bool write, Bounds bounds);

  /// Compares it with the accesses to a piece from `begin` on, and becomes one
  /// of them.
  void meet(int64_t begin, Shadow::Piece &piece);

private:
  bool visible(const Touch &old) const {
    return machine.clocks.visible(thread.id, old.stamp);
  }
  void meetWrite(int64_t begin, const Shadow::Piece &piece);
  void meetReads(int64_t begin, const Shadow::Piece &piece);
  /// Whether two accesses without an order between them are no race.
  bool isHarmless(const Touch &old) const;
  void replaceWrite(Shadow::Piece &piece) const;
  void checkProxy(const Touch &old, int64_t begin, const Shadow::Piece &piece);

  /// Reports that no order stands between it and `old`, which touched the
  /// elements from `begin` up to `end`.
  void clash(const Touch &old, bool oldWrites, int64_t begin, int64_t end);
  void reportHost(InFlightDiagnostic &diag, const Touch &old) const;
  void adviseOrder(InFlightDiagnostic &diag, const Touch &old) const;
  /// "writes [0, 64) of 'x' at rank 1 on rank 0 block 0 in launch 1".
  std::string describe(int64_t begin, int64_t end) const;
  /// Leaves open whether it touches the same elements as `old`.
  void mayMeet(const Touch &old);

  Machine &machine;
  Thread &thread;
  int32_t index;
  const Action &action;
  int32_t argument;
  int64_t rank;
  bool write;
  Bounds bounds;
  const ArgumentPlan &plan;
  Touch now;
};

Machine::PartAccess::PartAccess(Machine &machine, Thread &thread, int32_t index,
                                int32_t argument, int64_t rank, bool write,
                                Bounds bounds)
    : machine(machine), thread(thread), index(index),
      action(machine.program.actions[index]), argument(argument), rank(rank),
      write(write), bounds(bounds), plan(machine.program.arguments[argument]) {
  const Timestamp &transfer = machine.transfer;
  now.stamp = transfer.thread < 0 ? machine.clocks.stamp(thread.id) : transfer;
  now.action = index;
  now.launch = thread.launch;
  now.access = isa<MultimemReduceOp>(action.op) ? Touch::Reduction
               : isMail(action.kind)            ? Touch::Mail
               : bounds.anywhere && write       ? Touch::Scattered
               : write && machine.isAlike(plan) ? Touch::Alike
                                                : Touch::Plain;
  now.writes = write;
  now.somewhere = bounds.anywhere && isPlacedByData(action, argument);
  now.isGuess = bounds.isGuess;
  now.isCounted = bounds.isCounted;
  now.isUnsure = !thread.unsure.empty();
  now.proxy =
      machine.program.usesProxies ? proxyOf(action, argument) : Proxy::Generic;
  now.sums = bounds.sums;
}

std::string Machine::PartAccess::describe(int64_t begin, int64_t end) const {
  return formatv("{0} [{1}, {2}) of '{3}' at rank {4} on {5}",
                 write ? "writes" : "reads", std::max(begin, bounds.begin),
                 std::min(end, bounds.end), plan.name, rank,
                 machine.when(thread));
}

void Machine::PartAccess::clash(const Touch &old, bool oldWrites, int64_t begin,
                                int64_t end) {
  auto diag = machine.report(action);
  if (!diag)
    return;
  *diag << describe(begin, end);
  if (old.action < 0)
    return reportHost(*diag, old);
  llvm::StringRef kind = oldWrites ? "write" : "read";
  *diag << ", with no order between it and the " << kind << " by "
        << machine.name(old.stamp.thread) << " in launch " << old.launch;
  Operation *other = machine.program.actions[old.action].op;
  machine.reported.insert(other);
  diag->attachNote(other->getLoc()) << "the " << kind;
  adviseOrder(*diag, old);
}

void Machine::PartAccess::reportHost(InFlightDiagnostic &diag,
                                     const Touch &old) const {
  diag << ", where that rank may not have begun launch " << old.launch
       << ": its host may still use it";
  diag.attachNote() << "wait for that rank first: a comms.barrier before "
                       "the first access to what its host uses";
}

void Machine::PartAccess::adviseOrder(InFlightDiagnostic &diag,
                                      const Touch &old) const {
  bool reuse = old.launch != thread.launch;
  diag.attachNote()
      << (machine.isAlike(plan)
              ? "every block of the rank does this, and may find what "
                "another has written: share the elements out by "
                "comms.block_id, or give the kernel one block"
          : reuse ? "let the earlier launch end in a barrier or a signal that "
                    "orders them, or alternate two buffers by comms.epoch"
                  : "order them: a signal that releases and a wait that "
                    "acquires, or a barrier");
  if (machine.clocks.isAgent(old.stamp.thread) &&
      machine.program.actions[old.action].gin)
    diag.attachNote()
        << "what goes through the adapter is ordered by a signal by gin to "
           "the same rank in the same context; for this rank, by comms.flush";
  if (now.somewhere || old.somewhere)
    diag.attachNote()
        << "data decide the place, which may be any of these: bound it by "
           "comms.check_bounds before it, or by arith.minsi and arith.maxsi";
}

void Machine::PartAccess::mayMeet(const Touch &old) {
  bool isGuess = now.isGuess || old.isGuess;
  machine.steps += 4;
  if (machine.ownerOf(old.stamp.thread) == thread.id ||
      (!isGuess && machine.areApart(now, old)))
    return;
  machine.noteUnproven(
      action.op,
      "writes to '" + plan.name + "' where " +
          (isGuess ? "comms-check-sync does not follow the view" : "data say") +
          ", with no order between it and another access: it is not known "
          "whether they meet",
      "the other access", machine.program.actions[old.action].op);
  auto &unproven = machine.unproven;
  if (!isGuess && unproven.back().notes.size() == 1)
    unproven.back().notes.emplace_back(
        nullptr, "give each writer a part by its rank and block, or let it "
                 "begin behind the lengths of the others, exchanged before");
  for (UnprovenReason &made : unproven)
    made.isCounted |=
        made.op == action.op &&
        ((now.isCounted && old.isCounted) ||
         (machine.isPlacedByLengths(now) && machine.isPlacedByLengths(old)));
}

void Machine::PartAccess::checkProxy(const Touch &old, int64_t begin,
                                     const Shadow::Piece &piece) {
  machine.checkProxy(
      thread, index, argument, rank, now, old,
      {std::max(begin, bounds.begin), std::min(piece.end, bounds.end)});
}

void Machine::PartAccess::meetWrite(int64_t begin, const Shadow::Piece &piece) {
  const Touch &old = piece.write;
  if (visible(old))
    checkProxy(old, begin, piece);
  else if (now.isApartByData(old) || now.isGuess || old.isGuess)
    mayMeet(old);
  else
    clash(old, /*oldWrites=*/true, begin, piece.end);
}

bool Machine::PartAccess::isHarmless(const Touch &old) const {
  return isOwnValue(write ? old : now, write ? now : old) ||
         (old.access != Touch::Plain && old.access == now.access &&
          old.access != Touch::Scattered);
}

void Machine::PartAccess::meetReads(int64_t begin, const Shadow::Piece &piece) {
  for (const Touch &old : piece.reads) {
    if (!write && !old.writes)
      continue;
    if (old.writes && visible(old)) {
      checkProxy(old, begin, piece);
      continue;
    }
    bool isOpen = now.isApartByData(old) || now.isGuess || old.isGuess;
    if ((!isOpen && isHarmless(old)) || visible(old))
      continue;
    if (isOpen)
      mayMeet(old);
    else
      clash(old, old.writes, begin, piece.end);
  }
}

void Machine::PartAccess::replaceWrite(Shadow::Piece &piece) const {
  // What is not ordered with this write is still there for reads.
  llvm::erase_if(piece.reads, [&](const Touch &old) {
    return !now.isApartByData(old) || visible(old);
  });
  // Of two writes of a launch to other elements here, none stands for both.
  bool isOther =
      piece.write.launch == now.launch && piece.write.sums != now.sums;
  piece.write = now;
  if (isOther)
    piece.write.sums = 0;
}

void Machine::PartAccess::meet(int64_t begin, Shadow::Piece &piece) {
  bool mayClash = write || piece.hasWrites;
  machine.steps += 2 + (mayClash ? piece.reads.size() : 0);
  if (machine.isAlike(plan))
    now.version = countWrites(piece, now, action.deferral != Deferral::None);
  meetWrite(begin, piece);
  if (mayClash)
    meetReads(begin, piece);
  if (write && now.access == Touch::Plain)
    replaceWrite(piece);
  else
    piece.note(now);
}

void Machine::touchPart(Thread &thread, int32_t index, int32_t argument,
                        int64_t rank, bool write, Bounds bounds) {
  PartAccess access(*this, thread, index, argument, rank, write, bounds);
  size_t part = size_t(argument) * shape.followed.size() + rankIndex[rank];
  shadows[part].access(
      bounds.begin, bounds.end,
      [&](int64_t begin, Shadow::Piece &piece) { access.meet(begin, piece); });
}

/// Between two launches of a rank its host reads and writes its parts of
/// windows that are handed to it: all that peers wrote there has come, and what
/// they write in the next launch comes later.
void Machine::touchByHost(const Thread &thread, Timestamp turn) {
  if (shape.isPartial())
    return;
  for (auto [argument, plan] : llvm::enumerate(program.arguments)) {
    if (!plan.host || !isTracked(plan) || plan.elements == 0)
      continue;
    auto late = [&](const Touch &old, bool write) {
      if (old.action < 0)
        return;
      const Action &action = program.actions[old.action];
      if (auto diag = report(action)) {
        *diag << (write ? "writes" : "reads") << " '" << plan.name
              << "' at rank " << thread.rank << " in launch " << old.launch
              << " on " << name(old.stamp.thread)
              << ", which that rank does not wait for before it ends the launch"
              << ": its host may use it too early";
        diag->attachNote() << "end the kernel with a comms.barrier behind the "
                              "accesses to what its host uses";
      }
    };
    size_t part = argument * shape.followed.size() + rankIndex[thread.rank];
    Touch now{turn, -1, thread.launch, Touch::Plain, true};
    shadows[part].access(0, plan.elements, [&](int64_t, Shadow::Piece &piece) {
      steps += 2 + piece.reads.size();
      if (!clocks.visible(thread.id, piece.write.stamp))
        late(piece.write, true);
      for (const Touch &old : piece.reads)
        if (!clocks.visible(thread.id, old.stamp))
          late(old, false);
      piece.reads.clear();
      piece.write = now;
    });
  }
}
