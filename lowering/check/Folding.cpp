//===- Folding.cpp - Follows blocks that do the same as one ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Folding.h"

#include "lowering/check/Arithmetic.h"

#include "dialect/Packets.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Spans that are compared one by one; of more, blocks are taken to meet.
static constexpr size_t maxSpans = size_t(1) << 22;
/// Integers beyond this may overflow where blocks are apart.
static constexpr int64_t farthest = int64_t(1) << 61;

//===----------------------------------------------------------------------===//
// Footprints
//===----------------------------------------------------------------------===//

Footprints::Footprints(const Program &program, int64_t ranks)
    : program(program), ranks(ranks),
      parts((3 * program.arguments.size() + program.channels.size()) * ranks) {}

void Footprints::add(Kind kind, int64_t object, int64_t rank, int64_t begin,
                     int64_t end, int64_t slope, bool writes) {
  if (begin >= end)
    return;
  auto arguments = static_cast<int64_t>(program.arguments.size());
  int64_t row = kind == Cells  ? object
                : kind == Data ? arguments + object
                : kind == Mail ? 2 * arguments + object
                               : 3 * arguments + object;
  std::vector<Span> &spans = parts[row * ranks + rank].present;
  Span made{begin, end, slope, writes};
  if (!spans.empty()) {
    Span &last = spans.back();
    // Neighbors, and the same once more.
    if (last.slope == slope && last.writes == writes && begin <= last.end &&
        begin >= last.begin) {
      last.end = std::max(last.end, end);
      return;
    }
  }
  spans.push_back(made);
}

void Footprints::drop() {
  for (Part &part : parts)
    part.present.clear();
}

namespace {
/// How far spans reach that were seen so far: the farthest, and the farthest of
/// another owner.
struct FarthestEnds {
  int64_t first = INT64_MIN, other = INT64_MIN;
  int64_t owner = -1;

  int64_t without(int64_t some) const { return some == owner ? other : first; }
  void add(int64_t end, int64_t some) {
    if (some == owner) {
      first = std::max(first, end);
    } else if (end > first) {
      other = first;
      first = end;
      owner = some;
    } else {
      other = std::max(other, end);
    }
  }
};
} // namespace

/// Whether two blocks of the class meet: their spans lie apart if all lie in
/// the first `slope` places of each `period`, and else are compared.
bool Footprints::overlapWithin(std::vector<Span> &spans, int64_t count) const {
  auto write =
      llvm::find_if(spans, [](const Span &span) { return span.writes; });
  if (write == spans.end() || count == 1)
    return false;
  int64_t slope = write->slope, far = slope * (count - 1);
  if (slope == 0)
    return true;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (const Span &span : spans)
    if (span.writes) {
      if (span.slope != slope)
        return true;
      low = std::min(low, span.begin + std::min<int64_t>(far, 0));
      high = std::max(high, span.end + std::max<int64_t>(far, 0));
    }
  // Reads at other distances are of memory that nobody writes.
  std::vector<Span> alike;
  for (const Span &span : spans) {
    if (span.slope == slope) {
      alike.push_back(span);
      continue;
    }
    int64_t reach = span.slope * (count - 1);
    if (span.begin + std::min<int64_t>(reach, 0) < high &&
        span.end + std::max<int64_t>(reach, 0) > low)
      return true;
  }
  int64_t step = std::abs(slope), period = step * count;
  int64_t origin = llvm::min_element(alike, [](const Span &a, const Span &b) {
                     return a.begin < b.begin;
                   })->begin;
  if (llvm::all_of(alike, [&](const Span &span) {
        return (span.begin - origin) % period + (span.end - span.begin) <= step;
      }))
    return false;
  if (alike.size() > maxSpans / count)
    return true;
  std::vector<std::array<int64_t, 3>> moved;
  for (const Span &span : alike)
    for (int64_t lane = 0; lane < count; ++lane)
      moved.push_back(
          {span.begin + slope * lane, span.end + slope * lane, lane});
  llvm::sort(moved);
  FarthestEnds reach;
  for (auto [begin, end, lane] : moved) {
    if (reach.without(lane) > begin)
      return true;
    reach.add(end, lane);
  }
  return false;
}

/// Moves the present class to `all`, with the spans of each of its blocks.
bool Footprints::keep(Part &part, int64_t count) {
  for (const Span &span : part.present) {
    int64_t step = std::abs(span.slope), far = span.slope * (count - 1);
    bool isWhole = step <= span.end - span.begin;
    if (isWhole) {
      part.all.push_back({span.begin + std::min<int64_t>(far, 0),
                          span.end + std::max<int64_t>(far, 0), 0,
                          span.writes});
    } else {
      for (int64_t lane = 0; lane < count; ++lane)
        part.all.push_back({span.begin + span.slope * lane,
                            span.end + span.slope * lane, 0, span.writes});
    }
    kept += isWhole ? 1 : count;
    if (kept > maxSpans)
      return false;
  }
  part.classes.resize(part.all.size(), numClasses);
  part.present.clear();
  return true;
}

bool Footprints::close(Lanes lanes) {
  for (auto [number, part] : llvm::enumerate(parts)) {
    llvm::sort(part.present, [](const Span &a, const Span &b) {
      return std::tie(a.begin, a.end, a.slope, a.writes) <
             std::tie(b.begin, b.end, b.slope, b.writes);
    });
    auto isSame = [](const Span &a, const Span &b) {
      return std::tie(a.begin, a.end, a.slope, a.writes) ==
             std::tie(b.begin, b.end, b.slope, b.writes);
    };
    part.present.erase(llvm::unique(part.present, isSame), part.present.end());
    meeting = number;
    if (overlapWithin(part.present, lanes.count) || !keep(part, lanes.count))
      return false;
  }
  ++numClasses;
  return true;
}

bool Footprints::overlapBetween(Part &part) const {
  bool isWritten =
      llvm::any_of(part.all, [](const Span &span) { return span.writes; });
  if (!isWritten || part.classes.front() == part.classes.back())
    return false;
  std::vector<size_t> order(part.all.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return part.all[a].begin < part.all[b].begin;
  });
  FarthestEnds reads, writes;
  for (size_t number : order) {
    const Span &span = part.all[number];
    int32_t owner = part.classes[number];
    if (writes.without(owner) > span.begin ||
        (span.writes && reads.without(owner) > span.begin))
      return true;
    (span.writes ? writes : reads).add(span.end, owner);
  }
  return false;
}

bool Footprints::classesOverlap() {
  for (auto [number, part] : llvm::enumerate(parts)) {
    meeting = number;
    if (numClasses > 1 && overlapBetween(part))
      return true;
  }
  return false;
}

std::string Footprints::describeConflict() const {
  size_t row = meeting / ranks, arguments = program.arguments.size();
  if (row >= 3 * arguments)
    return "slots of channel " + std::to_string(row - 3 * arguments);
  return "'" + program.arguments[row % arguments].name + "'";
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Folding::Folding(const Program &program, Lanes lanes, size_t threads,
                 Footprints &footprints)
    : program(program), lanes(lanes), footprints(footprints),
      slopes(threads * program.initialValues.size()) {
  hasLoads = llvm::any_of(
      program.actions, [](const Action &action) { return action.loads >= 0; });
}

bool Folding::isPossible(const Program &program) {
  return llvm::none_of(program.actions, [](const Action &action) {
    switch (action.kind) {
    case ActionKind::EngineCopy:
      return true;
    case ActionKind::Barrier:
    case ActionKind::Arrive:
    case ActionKind::BarrierWait:
      return action.extent == BarrierExtent::Grid;
    default:
      return false;
    }
  });
}

static bool isNear(Interval value) {
  return value.low > -farthest && value.high < farthest;
}

static Interval moved(Interval value, int64_t by) {
  return {value.low + by, value.high + by};
}

static bool fits(Interval value, unsigned width) {
  return width >= 64 || (value.low >= llvm::minIntN(width) &&
                         value.high <= llvm::maxIntN(width));
}

/// What a block at this distance makes of known integers.
std::optional<int64_t> Folding::valueAt(const Instruction &in,
                                        const Interval *v, int64_t a, int64_t b,
                                        int64_t distance) const {
  int64_t x = v[in.a].low + a * distance;
  int64_t y = in.b < 0 ? 0 : v[in.b].low + b * distance;
  switch (in.code) {
  case Code::SignCast:
  case Code::ZeroCast:
    if (in.code == Code::ZeroCast)
      x = static_cast<int64_t>(unsignedOf(x, in.extra));
    else if (in.extra == 1)
      x = -x;
    return normalize(x, in.width);
  case Code::Compare:
    return compare(static_cast<arith::CmpIPredicate>(in.extra), x, y, in.width);
  default:
    if (auto value = compute(in.code, x, y, in.width))
      return normalize(*value, in.width);
    return std::nullopt;
  }
}

/// Of integers that are not all known.
bool Folding::stepUnknown(const Instruction &in, int32_t thread,
                          const Interval *v, int64_t a, int64_t b) {
  int64_t &made = slopes[at(thread, in.dst)];
  int64_t far = lanes.count - 1;
  if (in.code == Code::Compare) {
    auto predicate = static_cast<arith::CmpIPredicate>(in.extra);
    auto first = compareSpans(predicate, v[in.a], v[in.b]);
    for (int64_t lane = 1; lane < lanes.count; ++lane)
      if (compareSpans(predicate, moved(v[in.a], a * lane),
                       moved(v[in.b], b * lane)) != first)
        return splitBefore(lane);
    made = 0;
    return true;
  }
  if (in.code != Code::Add && in.code != Code::Sub)
    return splitBefore(1);
  Interval x = v[in.a], y = v[in.b];
  if (in.code == Code::Sub)
    y = {-y.high, -y.low}, b = -b;
  if (!isNear(x) || !isNear(y))
    return splitBefore(1);
  Interval sum = {x.low + y.low, x.high + y.high};
  if (!fits(sum, in.width) || !fits(moved(sum, (a + b) * far), in.width))
    return splitBefore(1);
  made = a + b;
  return true;
}

bool Folding::stepSloped(const Instruction &in, int32_t thread,
                         const Interval *v, int64_t a, int64_t b, int64_t c) {
  int64_t &made = slopes[at(thread, in.dst)];
  int64_t far = lanes.count - 1;
  auto isMovable = [&](Register reg, int64_t slope) {
    return reg < 0 || slope == 0 ||
           (isNear(v[reg]) && isNear(moved(v[reg], slope * far)) &&
            std::abs(slope) < (int64_t(1) << 40));
  };
  switch (in.code) {
  case Code::Move:
    made = a;
    return true;
  case Code::Assume:
    if (!v[in.a].isKnown())
      return splitBefore(1);
    made = a;
    return true;
  case Code::Select:
    if (a != 0 || (!v[in.a].isKnown() && b != c))
      return splitBefore(1);
    made = !v[in.a].isKnown() || v[in.a].low ? b : c;
    return true;
  case Code::Checked:
    if (b != 0 || c != 0 || !v[in.a].isKnown() || !v[in.b].isKnown() ||
        !v[in.c].isKnown() || !isMovable(in.a, a))
      return splitBefore(1);
    for (int64_t value : {v[in.a].low, v[in.a].low + a * far})
      if (value < 0 || v[in.b].low < 0 || value > v[in.c].low - v[in.b].low)
        return splitBefore(1);
    made = a;
    return true;
  case Code::Translate:
  case Code::PeerAt:
    return splitBefore(1);
  default:
    break;
  }
  if (!isMovable(in.a, a) || !isMovable(in.b, b))
    return splitBefore(1);
  if (!v[in.a].isKnown() || (in.b >= 0 && !v[in.b].isKnown()))
    return in.b >= 0 ? stepUnknown(in, thread, v, a, b) : splitBefore(1);
  auto first = valueAt(in, v, a, b, 0), second = valueAt(in, v, a, b, 1);
  if (!first || !second)
    return splitBefore(1);
  if (in.code == Code::Compare && *first != *second)
    return splitBefore(1);
  int64_t slope = *second - *first;
  // Sums and products by constants are what they seem, where none wraps.
  bool isLinear =
      in.code == Code::Add || in.code == Code::Sub ||
      (in.code == Code::Mul && (a == 0 || b == 0) &&
       std::abs(a == 0 ? v[in.a].low : v[in.b].low) < (int64_t(1) << 20) &&
       std::abs(a == 0 ? v[in.b].low : v[in.a].low) < (int64_t(1) << 40) &&
       std::abs(a == 0 ? b : a) < (int64_t(1) << 30));
  if (!isLinear || in.width < 64)
    for (int64_t lane = 2; lane < lanes.count; ++lane)
      if (valueAt(in, v, a, b, lane) != *first + slope * lane)
        return splitBefore(lane);
  made = slope;
  return true;
}

bool Folding::step(const Instruction &in, int32_t thread, const Interval *v) {
  int64_t a = slopeOf(thread, in.a), b = slopeOf(thread, in.b),
          c = slopeOf(thread, in.c);
  switch (in.code) {
  case Code::Jump:
  case Code::RegionEnd:
  case Code::ChoiceEnd:
  case Code::Back:
  case Code::End:
  case Code::Act:
  case Code::Compute:
    return true;
  case Code::Branch:
    return a == 0 || splitBefore(1);
  case Code::LoopEnter: {
    bool isKnown = v[in.a].isKnown() && v[in.b].isKnown() && v[in.c].isKnown();
    return (c == 0 && (isKnown || (a == 0 && b == 0))) || splitBefore(1);
  }
  case Code::BlockId:
    slopes[at(thread, in.dst)] = lanes.count > 1;
    return true;
  default:
    break;
  }
  if (a != 0 || b != 0 || c != 0)
    return stepSloped(in, thread, v, a, b, c);
  if (in.dst >= 0)
    slopes[at(thread, in.dst)] = 0;
  return true;
}

void Folding::unname(const Instruction &in, int32_t thread,
                     Interval *values) const {
  if (in.dst >= 0 && values[in.dst].term != 0 &&
      (slopeOf(thread, in.dst) != 0 || slopeOf(thread, in.a) != 0 ||
       slopeOf(thread, in.b) != 0 || slopeOf(thread, in.c) != 0))
    values[in.dst].term = 0;
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

bool Folding::admit(const Action &action, int32_t thread) {
  if (lanes.count == 1)
    return true;
  auto differs = [&](Register reg) { return slopeOf(thread, reg) != 0; };
  if (differs(action.peer) || differs(action.value) || differs(action.valid) ||
      differs(action.token) || llvm::any_of(action.tokens, differs))
    return splitBefore(1);
  for (const RangePlan &range : action.ranges) {
    if (!range.used)
      continue;
    bool isScratch = range.memory.kind == MemoryPlan::Scratch;
    // Integers in memory are followed by place.
    if (differs(range.count) || differs(range.rowCount) ||
        differs(range.memory.peer) || (isScratch && differs(range.offset)) ||
        (hasLoads && differs(range.offset) &&
         (action.loads >= 0 || range.write)))
      return splitBefore(1);
  }
  indexSlope = slopeOf(thread, action.index);
  counterSlope = slopeOf(thread, action.counterIndex);
  counter = action.counter;
  for (Register made : {action.dst, action.loads})
    if (made >= 0)
      clear(thread, made);
  return true;
}

/// Whether all blocks stay in [0, limit); else those that do are split off.
bool Folding::staysWithin(int64_t begin, int64_t end, int64_t slope,
                          int64_t limit) {
  int64_t far = slope * (lanes.count - 1);
  if (begin + far >= 0 && end + far <= limit)
    return true;
  for (int64_t lane = 1; lane < lanes.count; ++lane)
    if (begin + slope * lane < 0 || end + slope * lane > limit)
      return splitBefore(lane);
  return true;
}

bool Folding::touchCell(int32_t argument, int64_t rank, int64_t index) {
  int64_t slope = argument == counter ? counterSlope : indexSlope;
  if (!staysWithin(index, index + 1, slope, program.arguments[argument].count))
    return false;
  footprints.add(Footprints::Cells, argument, rank, index, index + 1, slope,
                 /*writes=*/true);
  return true;
}

bool Folding::touchSlot(int32_t channel, int64_t source, int64_t slot) {
  if (!staysWithin(slot, slot + 1, indexSlope, program.channels[channel].slots))
    return false;
  footprints.add(Footprints::Slots, channel, source, slot, slot + 1, indexSlope,
                 /*writes=*/true);
  return true;
}

bool Folding::touchMemory(int32_t thread, const RangePlan &range, int64_t rank,
                          int64_t begin, int64_t end, bool writes,
                          bool isExact) {
  int64_t slope = slopeOf(thread, range.offset);
  if (slope != 0 && !isExact)
    return splitBefore(1);
  int64_t limit = range.memory.limit < 0 ? INT64_MAX : range.memory.limit;
  if (!staysWithin(begin, end, slope, limit))
    return false;
  footprints.add(Footprints::Data, range.memory.argument, rank, begin, end,
                 slope, writes);
  return true;
}

bool Folding::touchPackets(int32_t thread, const Action &action, int64_t rank,
                           int64_t begin, int64_t end) {
  const RangePlan &range = action.ranges[0];
  int64_t slope = slopeOf(thread, range.offset);
  int64_t limit = range.memory.limit < 0 ? INT64_MAX : range.memory.limit;
  // Lines are stored as a whole.
  if (slope % kLineUnits != 0 && areLines(action.assumes) &&
      (action.kind == ActionKind::PacketStore ||
       action.kind == ActionKind::PacketLoad))
    return splitBefore(1);
  if (!staysWithin(begin, end, slope, limit))
    return false;
  footprints.add(Footprints::Mail, range.memory.argument, rank, begin, end,
                 slope, /*writes=*/true);
  return true;
}
