//===- Deadlock.cpp - Explains why a run is stuck -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Deadlock.h"

#include "lowering/check/Machine.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {

/// Lines of one kind that a report shows before it only counts.
constexpr size_t maxShown = 4;
/// Ops that are reported as causes.
constexpr size_t maxCauses = 4;

llvm::StringRef hintFor(ActionKind kind) {
  switch (kind) {
  case ActionKind::WaitSignal:
    return "every rank that the wait counts must signal this cell in every "
           "launch: "
           "look for a signal under a condition, to another cell or to "
           "another rank";
  case ActionKind::WaitCounter:
    return "only this rank's own comms.put ops with `counted` increment the "
           "counter: check how many it runs";
  case ActionKind::Barrier:
  case ActionKind::BarrierWait:
  case ActionKind::EngineCopy:
  case ActionKind::ChannelBarrier:
    return "every member must reach the barrier: move it out of conditions "
           "and roles that leave some out, or use a smaller team or extent";
  case ActionKind::Recv:
    return "the source must send through the same slot and channel, from the "
           "same block, in the same launch";
  case ActionKind::PacketLoad:
    return "the store must go to this rank's part, at the same offset, with "
           "the same flag and at least as many elements";
  case ActionKind::PoisonLoad:
    return "the store must go to this rank's part, at the same offset, with "
           "at least as many elements";
  default:
    return "";
  }
}

bool isBarrier(ActionKind kind) {
  return kind == ActionKind::Barrier || kind == ActionKind::BarrierWait ||
         kind == ActionKind::ChannelBarrier;
}

class Report {
public:
  explicit Report(const Machine &machine) : machine(machine) {}
  void emit();

private:
  void classify();
  bool gone(int32_t awaited) const { return machine.hasEnded(awaited); }
  bool isCause(int32_t thread) const;
  std::string cycle() const;
  void describe(InFlightDiagnostic &diag, int32_t thread);
  void noteSameWaiters(InFlightDiagnostic &diag,
                       llvm::ArrayRef<int32_t> threads);
  void others(InFlightDiagnostic &diag);
  /// Those of `threads` that this diagnostic has not named yet.
  SmallVector<int32_t> unnamed(llvm::ArrayRef<int32_t> threads) const {
    return to_vector(make_filter_range(
        threads, [&](int32_t thread) { return !named.contains(thread); }));
  }
  std::string where(int32_t thread) const {
    return llvm::formatv("rank {0}, block {1}", machine.rankOf(thread),
                         machine.blockOf(thread));
  }
  /// "signal s[0] >= 3; observed 2 (launch 1)".
  std::string what(int32_t thread) const {
    return llvm::formatv("{0} (launch {1})", waiting[thread].what,
                         machine.launchOf(thread));
  }

  const Machine &machine;
  std::vector<Waiting> waiting;
  bool cyclic = false;
  /// Threads whose waits the diagnostic at hand tells.
  llvm::SmallDenseSet<int32_t> named;
  /// Threads by the op they wait at.
  llvm::MapVector<const Action *, SmallVector<int32_t>> causes, followers;
};

bool Report::isCause(int32_t thread) const {
  const Waiting &state = waiting[thread];
  return state.awaited.empty() ||
         llvm::any_of(state.awaited,
                      [&](int32_t other) { return gone(other); });
}

void Report::classify() {
  waiting.resize(machine.numThreads());
  for (int32_t t = 0; t < machine.numThreads(); ++t)
    if (machine.isStuck(t))
      waiting[t] = machine.describe(t);
  for (int32_t t = 0; t < machine.numThreads(); ++t)
    if (machine.isStuck(t))
      (isCause(t) ? causes : followers)[&machine.waitsAt(t)].push_back(t);
  // Nobody is missing: each waits for another.
  if (!causes.empty())
    return;
  cyclic = true;
  // A barrier waits for its members. The cause lies where those are stuck.
  for (auto &[action, threads] : followers)
    if (!isBarrier(action->kind))
      causes[action] = threads;
  if (causes.empty())
    return std::swap(causes, followers);
  followers.remove_if(
      [](const auto &entry) { return !isBarrier(entry.first->kind); });
}

/// A circle of threads that wait for one another, or "".
std::string Report::cycle() const {
  std::vector<int32_t> seenAt(machine.numThreads(), -1);
  SmallVector<int32_t> path;
  int32_t at = causes.empty() ? -1 : causes.front().second.front();
  while (at >= 0 && seenAt[at] < 0) {
    seenAt[at] = static_cast<int32_t>(path.size());
    path.push_back(at);
    int32_t next = -1;
    for (int32_t other : waiting[at].awaited)
      if (machine.isStuck(other)) {
        next = other;
        break;
      }
    at = next;
  }
  if (at < 0)
    return "";
  std::string text;
  for (size_t i = seenAt[at]; i < path.size(); ++i) {
    if (i - seenAt[at] >= 2 * maxShown) {
      text += "… -> ";
      break;
    }
    text += machine.name(path[i]) + " -> ";
  }
  return text + machine.name(at);
}

void Report::describe(InFlightDiagnostic &diag, int32_t thread) {
  const Waiting &state = waiting[thread];
  named = {thread};
  for (const std::string &line : state.details)
    diag.attachNote() << line;
  size_t shown = 0;
  for (int32_t other : state.awaited) {
    bool left = gone(other);
    if (!left && !machine.isStuck(other))
      continue;
    if (++shown > maxShown) {
      diag.attachNote() << state.awaited.size() - maxShown
                        << " more have not arrived";
      break;
    }
    if (left) {
      diag.attachNote() << machine.name(other) << " has ended launch "
                        << machine.launchOf(thread) << " without it";
      continue;
    }
    named.insert(other);
    diag.attachNote(machine.waitsAt(other).op->getLoc())
        << where(other) << " waits here, for " << what(other);
  }
}

/// Names the other threads that wait at the same op.
void Report::noteSameWaiters(InFlightDiagnostic &diag,
                             llvm::ArrayRef<int32_t> threads) {
  SmallVector<int32_t> left = unnamed(threads);
  for (int32_t thread : llvm::ArrayRef(left).take_front(maxShown)) {
    named.insert(thread);
    diag.attachNote() << where(thread) << " waits here too, for "
                      << what(thread);
  }
  if (left.size() > maxShown)
    diag.attachNote() << left.size() - maxShown << " more blocks wait here";
}

/// Names the threads that wait for the causes.
void Report::others(InFlightDiagnostic &diag) {
  size_t shown = 0;
  for (auto &[action, all] : followers) {
    SmallVector<int32_t> threads = unnamed(all);
    if (threads.empty())
      continue;
    if (++shown > maxShown)
      break;
    Diagnostic &note = diag.attachNote(action->op->getLoc());
    note << where(threads.front());
    if (threads.size() > 1)
      note << " and " << threads.size() - 1 << " more";
    note << (threads.size() > 1 ? " wait" : " waits") << " here as a result";
  }
}

void Report::emit() {
  classify();
  std::string circle;
  if (cyclic)
    circle = cycle();
  size_t shown = 0;
  for (auto &[action, threads] : causes) {
    if (++shown > maxCauses)
      break;
    int32_t first = threads.front();
    InFlightDiagnostic diag = action->op->emitError();
    diag << "deadlock: " << where(first) << " waits for " << what(first);
    describe(diag, first);
    noteSameWaiters(diag, threads);
    bool inCircle = shown == 1 && !circle.empty() && !waiting[first].mismatch;
    if (inCircle)
      diag.attachNote() << "the wait is cyclic: " << circle
                        << "; let each side signal or send before it waits";
    if (llvm::StringRef hint = hintFor(action->kind);
        !hint.empty() && (!inCircle || !followers.empty()))
      diag.attachNote() << hint;
    if (shown == 1)
      others(diag);
  }
}

} // namespace

void mlir::comms::check::reportDeadlock(const Machine &machine) {
  Report(machine).emit();
}
