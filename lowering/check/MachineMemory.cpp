//===- MachineMemory.cpp - Which elements an access touches ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// All that an access of which not everything is known may touch.
Machine::Bounds Machine::possibleBounds(const Thread &thread,
                                        const RangePlan &range) const {
  bool isGuess = range.memory.moved || range.offset < 0;
  Interval at = isGuess ? Interval() : getInterval(thread, range.offset);
  bool isCounted = at.isCounted && at.term == 0;
  Interval count = getInterval(thread, range.count);
  if (range.fixedCount > 0)
    count.high = std::min(count.high, range.fixedCount);
  else if (range.count < 0 && range.fixedCount == 0)
    return {};
  // A part of a matrix lies within its columns.
  if (range.column >= 0)
    count.high =
        std::min(count.high,
                 range.stride - std::max<int64_t>(
                                    getInterval(thread, range.column).low, 0));
  int64_t limit = range.memory.limit >= 0 ? range.memory.limit : INT64_MAX;
  int64_t most = std::clamp<int64_t>(count.high, 0, limit);
  if (most == 0)
    return {};
  int64_t first = std::clamp<int64_t>(at.low, 0, limit);
  int64_t last = std::clamp<int64_t>(at.high, first, limit);
  return {first, last + std::min(most, limit - last), !at.isKnown(), isGuess,
          isCounted};
}

/// Whether a part of a matrix, whose first element is `first`, has columns or
/// rows that the matrix does not have; this is reported.
bool Machine::leavesMatrix(const Thread &thread, const Action &action,
                           const RangePlan &range, int64_t first,
                           int64_t count) {
  int64_t columns = range.stride, rows = mostRows(thread, range);
  auto leaves = [&](StringRef what, int64_t from, int64_t most, int64_t has) {
    if (from >= 0 && most <= has && from <= has - most)
      return false;
    if (auto diag = reportRange(action)) {
      *diag << (range.write ? "writes " : "reads ") << what << " [" << from
            << ", " << from + most << ") of ";
      if (range.memory.argument >= 0)
        *diag << "'" << program.arguments[range.memory.argument].name << "'";
      else
        *diag << "memory";
      *diag << ", which has " << has << ", on " << when(thread);
      diag->attachNote() << "shorten the last tile with `" << what
                         << "`, or check the loop's bounds";
    }
    return true;
  };
  if (count <= 0 || columns <= 0)
    return false;
  std::optional<int64_t> column = get(thread, range.column);
  if (column && leaves("columns", *column, count, columns))
    return true;
  // A view may begin within a row.
  bool areRows = range.memory.start < 0 && range.memory.limit >= 0 &&
                 (range.rowCount < 0 || get(thread, range.rowCount));
  return areRows && first >= 0 &&
         leaves("rows", first / columns, rows, range.memory.limit / columns);
}

std::optional<Machine::Bounds>
Machine::bounds(Thread &thread, const Action &action, const RangePlan &range) {
  auto offset = range.memory.moved || range.offset < 0
                    ? std::nullopt
                    : get(thread, range.offset);
  auto count = range.count < 0 ? std::optional(range.fixedCount)
                               : get(thread, range.count);
  if (count && *count < 0 && range.count < 0)
    count = std::nullopt;
  auto rows = range.rowCount < 0 ? std::optional<int64_t>(1)
                                 : get(thread, range.rowCount);
  if (!offset || !count || !rows || !thread.unsure.empty())
    return possibleBounds(thread, range);
  if (range.count >= 0 && range.fixedCount > 0 &&
      (*count < 0 || *count > range.fixedCount)) {
    if (auto diag = reportRange(action)) {
      *diag << "says that " << *count << " elements are valid of a tile of "
            << range.fixedCount << ", on " << when(thread);
      diag->attachNote() << "clamp it: arith.minsi and arith.maxsi with the "
                            "tile's length and 0";
    }
    return std::nullopt;
  }
  int64_t end = 0;
  bool overflow = __builtin_add_overflow(*offset, *count, &end);
  bool outside = range.memory.limit >= 0 && end > range.memory.limit;
  // Nothing is touched, wherever that is.
  if (*rows == 0 || (*count == 0 && !overflow))
    return Bounds{0, 0};
  if (range.column >= 0 && leavesMatrix(thread, action, range, *offset, *count))
    return std::nullopt;
  if (overflow || *offset < 0 || *count < 0 || outside) {
    if (auto diag = reportRange(action)) {
      *diag << (range.write ? "writes" : "reads") << " elements [" << *offset
            << ", " << (overflow ? std::string("…") : std::to_string(end))
            << ") of ";
      if (range.memory.argument >= 0)
        *diag << "'" << program.arguments[range.memory.argument].name << "'";
      else
        *diag << "memory";
      if (range.memory.limit >= 0)
        *diag << ", which has " << range.memory.limit;
      *diag << ", on " << when(thread);
      diag->attachNote() << "shorten the last tile with `valid`, or check the "
                            "loop's bounds";
    }
    return std::nullopt;
  }
  return Bounds{*offset, end};
}

void Machine::noteLengths(const LinearSum &sum) {
  for (const auto &[term, factor] : sum.factors)
    lengths.insert(term);
}

/// Whether it begins behind lengths that data choose freely, not at a place
/// that the host gives.
bool Machine::isPlacedByLengths(const Touch &touch) const {
  return touch.sums != 0 &&
         llvm::all_of(
             sumsOfPlaces[touch.sums].begin.factors,
             [&](const auto &part) { return lengths.count(part.first) != 0; });
}

/// The elements of a range of which the first is not known.
int32_t Machine::findSums(const Thread &thread, const RangePlan &range) {
  if (range.memory.moved || range.offset < 0 || range.rows != 1 ||
      range.rowCount >= 0)
    return 0;
  std::optional<LinearSum> begin =
      findSum(terms, getInterval(thread, range.offset));
  Interval count = range.count < 0 ? Interval::of(range.fixedCount)
                                   : getInterval(thread, range.count);
  std::optional<LinearSum> length = findSum(terms, count);
  if (!length && range.fixedCount > 0)
    length = LinearSum::of(range.fixedCount);
  if (!begin || !length)
    return 0;
  SumsOfPlace made{*begin, *begin, {}};
  if (!made.end.add(*length, 1))
    return 0;
  for (const UnknownBranch &unsure : thread.unsure)
    if (unsure.holds != 0) {
      made.conditions.push_back(unsure.holds);
      if (auto bound = findBound(terms, unsure.holds))
        noteLengths(*bound);
    }
  noteLengths(*length);
  sumsOfPlaces.push_back(std::move(made));
  return static_cast<int32_t>(sumsOfPlaces.size()) - 1;
}

/// Whether two accesses touch other elements for all data.
bool Machine::areApart(const Touch &a, const Touch &b) const {
  constexpr size_t mostConditions = 8;
  if (a.sums == 0 || b.sums == 0)
    return false;
  const SumsOfPlace &one = sumsOfPlaces[a.sums], &other = sumsOfPlaces[b.sums];
  SmallVector<int32_t, 2> conditions = one.conditions;
  llvm::append_range(conditions, other.conditions);
  if (conditions.size() > mostConditions)
    conditions.resize(mostConditions);
  auto isBefore = [&](const SumsOfPlace &first, const SumsOfPlace &second) {
    LinearSum between = second.begin;
    return between.add(first.end, -1) &&
           isNeverNegative(terms, between, conditions);
  };
  return isBefore(one, other) || isBefore(other, one);
}

void Machine::touch(Thread &thread, int32_t index, const RangePlan &range,
                    Bounds bounds) {
  const MemoryPlan &memory = range.memory;
  if (shape.isPartial() || bounds.begin == bounds.end)
    return;
  if (memory.kind == MemoryPlan::Scratch && !thread.underway.empty())
    checkPending(thread, index, -1 - int64_t(memory.scratch), range.write,
                 bounds);
  if (memory.kind == MemoryPlan::Scratch && program.usesProxies)
    noteScratch(thread, index, range, bounds);
  if (memory.argument < 0)
    return;
  // Blocks that share out this rank's own memory by data are not compared.
  const ArgumentPlan &argument = program.arguments[memory.argument];
  bool byData = bounds.anywhere && !bounds.isGuess;
  bool tracked =
      isTracked(argument) && !(byData && !argument.shared && shape.blocks > 1);
  if (isTracked(argument) && !tracked)
    noteUnproven(
        program.actions[index].op,
        "touches elements of '" + argument.name +
            "' that data choose: it is not known whether blocks of a rank "
            "touch the same ones",
        "let ranges of blocks be apart on all data, or synchronize the "
        "blocks");
  bool isExact = !bounds.anywhere && thread.unsure.empty() &&
                 (range.count < 0 || get(thread, range.count)) &&
                 (range.rowCount < 0 || get(thread, range.rowCount));
  if (tracked && range.write && !isExact && !bounds.isGuess)
    bounds.sums = findSums(thread, range);
  forParts(thread, memory, [&](int64_t rank) {
    if (!thread.underway.empty())
      checkPending(thread, index, placeOf(memory.argument, rank), range.write,
                   bounds);
    if (tracked && folding)
      (void)agree(folding->touchMemory(thread.id, range, rank, bounds.begin,
                                       bounds.end, range.write, isExact));
    if (tracked)
      touchPart(thread, index, memory.argument, rank, range.write, bounds);
  });
}

/// Whether two of those that touch it could meet there: blocks, or proxies.
bool Machine::isTracked(const ArgumentPlan &argument) const {
  return (argument.written || argument.host) &&
         (argument.shared || argument.isCopied || shape.blocks > 1);
}

void Machine::forParts(const Thread &thread, const MemoryPlan &memory,
                       llvm::function_ref<void(int64_t)> visit) {
  if (memory.kind == MemoryPlan::Own)
    return visit(thread.rank);
  const TeamView &team = view(thread, memory.team);
  auto visitMember = [&](int64_t peer) {
    // Nobody looks at the parts of ranks that are not followed.
    if (peer >= 0 && peer < team.size && rankIndex[team.world(peer)] >= 0)
      visit(team.world(peer));
  };
  if (memory.kind == MemoryPlan::Peer)
    if (auto peer = get(thread, memory.peer))
      return visitMember(*peer);
  for (int64_t rank = 0; rank < team.size; ++rank)
    visitMember(rank);
}

void Machine::doAccess(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  bool sure = thread.unsure.empty();
  if (llvm::any_of(thread.unsure,
                   [](const UnknownBranch &unsure) { return unsure.isOver; }))
    return;
  if (sure && action.peer >= 0 && action.kind == ActionKind::Access &&
      get(thread, action.peer) && !peerOf(thread, action))
    return;
  std::optional<Bounds> pieces[std::extent_v<decltype(action.ranges)>];
  transfer = beginTransfer(thread, action);
  llvm::scope_exit ended([&] { transfer = {}; });
  for (auto [at, range] : llvm::enumerate(action.ranges)) {
    if (!range.used)
      continue;
    if (sure && range.memory.kind == MemoryPlan::Peer)
      if (auto peer = get(thread, range.memory.peer)) {
        Action at = {};
        at.op = action.op;
        at.peer = range.memory.peer;
        at.team = range.memory.team;
        if (!peerOf(thread, at))
          return;
      }
    pieces[at] = bounds(thread, action, range);
    if (!pieces[at])
      continue;
    touchRows(thread, index, range, *pieces[at]);
    if (range.write)
      storeInteger(thread, action, range, *pieces[at]);
    else
      loadInteger(thread, action, *pieces[at]);
  }
  if (isa<ContractOp>(action.op) && action.ranges[2].used)
    checkProduct(thread, action);
  if (contents && !fatal)
    moveContents(thread, action, pieces);
  if (sure && action.counter >= 0)
    count(thread, index);
  for (auto [at, range] : llvm::enumerate(action.ranges))
    if (!fatal && pieces[at])
      defer(thread, index, range, *pieces[at]);
}

/// The copy engine has its turn when all blocks of the rank have come; they go
/// on when it is done. The last of them stands for it.
bool Machine::doEngineCopy(Thread &thread, int32_t index) {
  BarrierState &state = barriers[barrier(thread, -1, true, -2 - index)];
  if (thread.pending < 0) {
    thread.pending = arrive(thread, index, state, /*release=*/true, true);
    if (leave(thread, index, state, thread.pending, /*acquire=*/true, true)) {
      doAccess(thread, index);
      clocks.merge(thread.id, state.generations[thread.pending].message,
                   /*release=*/true);
    }
  }
  if (!leave(thread, index, state, thread.pending, /*acquire=*/true, true))
    return false;
  thread.pending = -1;
  return true;
}

int64_t Machine::mostRows(const Thread &thread, const RangePlan &range) const {
  int64_t rows = range.rows, limit = range.memory.limit;
  if (range.rowCount < 0)
    return rows;
  int64_t most = rows >= 0                        ? rows
                 : limit >= 0 && range.stride > 0 ? limit / range.stride + 1
                                                  : 1;
  return std::clamp<int64_t>(getInterval(thread, range.rowCount).high, 0, most);
}

/// All rows of a range, of which `row` is the first. Rows that lie one behind
/// the other are touched together.
void Machine::touchRows(Thread &thread, int32_t index, const RangePlan &range,
                        Bounds row) {
  int64_t rows = mostRows(thread, range), limit = range.memory.limit;
  // Which lanes of a vector are on is not known: perhaps none.
  if (range.rowCount >= 0 && range.column < 0)
    row.isGuess |= !get(thread, range.rowCount);
  // Where not everything is known, the first row may be anywhere.
  if (limit >= 0 && (row.anywhere || row.isGuess) && rows > 1) {
    int64_t further = limit - row.end;
    if (!row.isGuess &&
        rows - 1 <= further / std::max<int64_t>(range.stride, 1))
      further = (rows - 1) * range.stride;
    row.end += further;
    rows = 1;
  }
  if (rows > 1 && row.end - row.begin == range.stride) {
    row.end = row.begin + rows * range.stride;
    rows = 1;
  }
  for (int64_t done = 0; done < rows; ++done) {
    // Behind the memory there are no rows.
    if (limit >= 0)
      row.end = std::min(row.end, limit);
    if (row.begin >= row.end)
      return;
    touch(thread, index, range, row);
    row.begin += range.stride;
    row.end += range.stride;
  }
}
