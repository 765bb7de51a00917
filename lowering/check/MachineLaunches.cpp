//===- MachineLaunches.cpp - What grows from launch to launch -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches repeat after a period, except for integers that grow by the same
// amount in each period. Two kinds of them fail in a launch that is not
// followed: a wait whose value grows faster or more slowly than its cell, and a
// place, cell or rank that moves on until it is out of range.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// "by 9 in each launch", "by 9 in 2 launches".
static std::string growth(int64_t amount, int64_t period) {
  if (amount % period == 0)
    amount /= period, period = 1;
  return "by " + std::to_string(amount) +
         (period == 1 ? " in each launch"
                      : " in " + std::to_string(period) + " launches");
}

//===----------------------------------------------------------------------===//
// Waits and their cells
//===----------------------------------------------------------------------===//

/// What a wait wants in the present launch, at most.
void Machine::noteWant(const Thread &thread, Progress &state, int64_t want) {
  if (shape.period == 0)
    return;
  state.wants.resize(thread.launch, std::nullopt);
  std::optional<int64_t> &most = state.wants[thread.launch - 1];
  most = std::max(most.value_or(want), want);
}

/// All ranks have ended a launch.
void Machine::noteCells(int64_t launch) {
  if (shape.period == 0)
    return;
  for (Cell &cell : cells) {
    cell.ends.resize(launch - 1, 0);
    cell.ends.push_back(cell.value);
  }
}

std::vector<Drift> Machine::findDrifts() const {
  std::vector<Drift> drifts;
  if (shape.period == 0)
    return drifts;
  for (const auto &[key, state] : progress) {
    auto now = static_cast<int64_t>(state.wants.size());
    int64_t before = now - shape.period;
    const Cell &cell = cells[key.second];
    if (before < 1 || !state.wants[before - 1] || cell.isByData)
      continue;
    Drift made;
    made.wait = {static_cast<int32_t>(key.first >> 32),
                 static_cast<int32_t>(key.first), cell.argument, cell.rank,
                 cell.index};
    int64_t want = *state.wants[now - 1];
    made.wanted = want - *state.wants[before - 1];
    made.grown = cell.ends[now - 1] - cell.ends[before - 1];
    int64_t apart = made.wanted - made.grown;
    if (apart == 0)
      continue;
    // It is met by the launch itself, or not by those before it, for as long.
    int64_t slack = apart > 0 ? cell.ends[now - 1] - want
                              : want - (now > 1 ? cell.ends[now - 2] : 0);
    int64_t periods =
        apart > 0 ? slack / apart + 1
                  : llvm::divideCeilSigned(std::max<int64_t>(slack, 0), -apart);
    made.launch = now + shape.period * periods;
    drifts.push_back(made);
  }
  // The order of a hash map says nothing.
  llvm::sort(drifts,
             [](const Drift &a, const Drift &b) { return a.wait < b.wait; });
  return drifts;
}

std::string Machine::describe(const Drift &drift) const {
  Cell cell;
  cell.argument = static_cast<int32_t>(drift.wait[2]);
  cell.rank = drift.wait[3];
  cell.index = drift.wait[4];
  return cellName(cell) + " grows " + growth(drift.grown, shape.period) +
         ", and what " + name(static_cast<int32_t>(drift.wait[0])) +
         " waits for grows " + growth(drift.wanted, shape.period);
}

void Machine::reportNeverMet(const Drift &drift) {
  const Action &action = program.actions[drift.wait[1]];
  if (auto diag = report(action)) {
    *diag << "never ends in launch " << drift.launch << ": " << describe(drift);
    diag->attachNote() << "let both grow by the same amount";
  }
}

bool Machine::isIdle(const Thread &thread, int32_t index,
                     const Cell &cell) const {
  return !shape.idle.empty() &&
         shape.idle.count(
             {thread.id, index, cell.argument, cell.rank, cell.index}) != 0;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

namespace {
/// Something that an action names by an integer.
struct NamedPlace {
  Register reg;
  std::string what;
  /// How many there are; -1: not known.
  int64_t limit = -1;
};
} // namespace

/// The ranks, cells and elements that an action names.
static SmallVector<NamedPlace> placesOf(const Program &program,
                                        const Action &action) {
  SmallVector<NamedPlace> places;
  auto add = [&](Register reg, const std::string &what, int64_t limit) {
    if (reg >= 0)
      places.push_back({reg, what, limit});
  };
  auto nameOf = [&](int32_t argument) {
    return argument < 0 ? std::string("memory")
                        : "'" + program.arguments[argument].name + "'";
  };
  bool hasCell = action.object >= 0 &&
                 static_cast<size_t>(action.object) < program.arguments.size();
  add(action.peer, "rank", -1);
  add(action.index, hasCell ? "index of " + nameOf(action.object) : "slot",
      hasCell ? program.arguments[action.object].count : -1);
  if (action.counter >= 0)
    add(action.counterIndex, "cell of " + nameOf(action.counter),
        program.arguments[action.counter].count);
  for (const RangePlan &range : action.ranges) {
    if (!range.used)
      continue;
    std::string of = " of " + nameOf(range.memory.argument);
    add(range.memory.peer, "rank", -1);
    add(range.offset, "element" + of, range.memory.limit);
    add(range.count, "number of elements" + of, range.fixedCount + 1);
  }
  return places;
}

/// What an action names in the last launch, and in the one a period before.
void Machine::notePlaces(const Thread &thread, int32_t index) {
  bool isLast = thread.launch == shape.launches;
  if (!isLast && thread.launch != shape.launches - shape.period)
    return;
  auto &places = (isLast ? placesNow : placesBefore)[{thread.id, index}];
  for (const NamedPlace &place : placesOf(program, program.actions[index]))
    places.push_back(get(thread, place.reg));
  steps += places.size();
}

/// A place that the last launch has moved on leaves the array in a later one.
void Machine::checkPlaces() {
  for (const auto &[key, now] : placesNow) {
    auto it = placesBefore.find(key);
    if (it == placesBefore.end())
      continue;
    const std::vector<std::optional<int64_t>> &before = it->second;
    const Action &action = program.actions[key.second];
    int64_t launch = shape.launches, earlier = launch - shape.period;
    if (now.size() != before.size()) {
      noteUnproven(action.op, "does not run as often in launch " +
                                  llvm::Twine(launch) + " as in launch " +
                                  llvm::Twine(earlier) +
                                  ": later launches were not followed");
      continue;
    }
    auto apart = std::mismatch(now.begin(), now.end(), before.begin());
    if (apart.first == now.end() || !*apart.first || !*apart.second)
      continue;
    int64_t last = **apart.first, first = **apart.second;
    SmallVector<NamedPlace> places = placesOf(program, action);
    const NamedPlace &place =
        places[static_cast<size_t>(apart.first - now.begin()) % places.size()];
    auto diag = report(action);
    if (!diag)
      continue;
    *diag << "moves on " << growth(last - first, shape.period) << ": "
          << place.what << " " << first << " in launch " << earlier << ", "
          << last << " in launch " << launch << " on " << name(key.first)
          << "; in ";
    if (place.limit > 0 && last > first)
      *diag << "launch "
            << launch + shape.period * llvm::divideCeilSigned(
                                           place.limit - last, last - first);
    else
      *diag << "a later launch";
    *diag << " it is out of range";
    diag->attachNote() << "take the remainder of comms.epoch by how many "
                          "there are";
  }
}
