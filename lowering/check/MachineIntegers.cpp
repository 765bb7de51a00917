//===- MachineIntegers.cpp - Integers: arithmetic, scalars, memory --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/check/Arithmetic.h"
#include "lowering/check/ProgramBuilder.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// dst of Code::Checked. A check that fails ends the run: what is behind it
/// cannot be reached, and nothing is said of it. The interval is then empty.
static Interval checked(Interval value, Interval other, Interval limit) {
  int64_t most = limit.high;
  (void)llvm::SubOverflow(limit.high, std::max<int64_t>(other.low, 0), most);
  return {std::max<int64_t>(value.low, 0), std::min(value.high, most)};
}

/// dst of Code::Assume. Where nothing is left, it is not reached.
static Interval assumed(Interval value, arith::CmpIPredicate predicate,
                        Interval other) {
  using Predicate = arith::CmpIPredicate;
  if (value.isKnown())
    return value;
  Interval found = value;
  int64_t below = other.high == INT64_MIN ? INT64_MIN : other.high - 1;
  int64_t above = other.low == INT64_MAX ? INT64_MAX : other.low + 1;
  bool isUnsigned = predicate == Predicate::ult || predicate == Predicate::ule;
  if (isUnsigned && other.low < 0)
    return value;
  switch (predicate) {
  case Predicate::eq:
    found.low = std::max(value.low, other.low);
    found.high = std::min(value.high, other.high);
    break;
  case Predicate::ult:
  case Predicate::slt:
    found.high = std::min(value.high, below);
    break;
  case Predicate::ule:
  case Predicate::sle:
    found.high = std::min(value.high, other.high);
    break;
  case Predicate::sgt:
    found.low = std::max(value.low, above);
    break;
  case Predicate::sge:
    found.low = std::max(value.low, other.low);
    break;
  default:
    break;
  }
  if (isUnsigned)
    found.low = std::max<int64_t>(found.low, 0);
  return found.low <= found.high ? found : value;
}

void Machine::evaluateChecked(const Instruction &in, Thread &thread,
                              Interval *v) {
  v[in.dst] = checked(v[in.a], v[in.b], v[in.c]);
  if (v[in.dst].low > v[in.dst].high) {
    v[in.dst] = v[in.a];
    if (!thread.unsure.empty())
      thread.unsure.back().isOver = true;
  }
  v[in.dst].term = v[in.a].term;
  v[in.dst].isCounted = v[in.a].isCounted;
  // What the check does not let pass are no data of this program.
  if (shape.model && v[in.a].isKnown() && v[in.b].isKnown() &&
      v[in.c].isKnown() &&
      (v[in.a].low < 0 || v[in.a].low > v[in.c].low ||
       v[in.b].low > v[in.c].low - v[in.a].low))
    fatal = open = true;
}

Interval Machine::evaluateCast(const Instruction &in, Interval value) {
  bool isSigned = in.code == Code::SignCast;
  if (!value.isKnown()) {
    int32_t term = terms.node(in, value, {}, {});
    Interval cut = castSpan(value, isSigned, in.extra, in.width);
    // What keeps its value keeps its name.
    bool isSame = value.low == cut.low && value.high == cut.high;
    return {cut.low, cut.high, isSame ? value.term : term, value.isCounted};
  }
  int64_t known = value.low;
  if (!isSigned)
    known = static_cast<int64_t>(unsignedOf(known, in.extra));
  else if (in.extra == 1)
    known = -known;
  return Interval::of(normalize(known, in.width));
}

Interval Machine::evaluateUnknown(const Instruction &in, Interval a,
                                  Interval b) {
  int32_t term = terms.node(in, a, b, {});
  // What keeps its value keeps its name.
  auto isOf = [&](const Interval &one, const Interval &other) {
    return (in.code == Code::MinS && one.high <= other.low) ||
           (in.code == Code::MaxS && one.low >= other.high);
  };
  if (isOf(a, b))
    return a;
  if (isOf(b, a))
    return b;
  Interval result = span(in.code, a, b, in.width);
  result.term = term;
  result.isCounted = a.isCounted || b.isCounted;
  return result;
}

void Machine::evaluate(const Instruction &in, Thread &thread, Interval *v) {
  std::optional<int64_t> result;
  auto isKnown = [&](Register reg) { return v[reg].isKnown(); };
  switch (in.code) {
  case Code::Forget:
    break;
  case Code::Move:
    v[in.dst] = v[in.a];
    return;
  case Code::Checked:
    evaluateChecked(in, thread, v);
    return;
  case Code::Assume:
    v[in.dst] =
        assumed(v[in.a], static_cast<arith::CmpIPredicate>(in.extra), v[in.b]);
    return;
  case Code::Opaque:
    v[in.dst] = findOpaque(thread, in);
    return;
  case Code::Compare:
    if (isKnown(in.a) && isKnown(in.b))
      result = compare(static_cast<arith::CmpIPredicate>(in.extra), v[in.a].low,
                       v[in.b].low, in.width);
    else if (auto known = compareSpans(
                 static_cast<arith::CmpIPredicate>(in.extra), v[in.a], v[in.b]);
             known && in.width > 1)
      result = *known;
    if (!result) {
      v[in.dst] = {0, 1, terms.node(in, v[in.a], v[in.b], {})};
      return;
    }
    break;
  case Code::Select:
    v[in.dst] = !isKnown(in.a)
                    ? Interval{std::min(v[in.b].low, v[in.c].low),
                               std::max(v[in.b].high, v[in.c].high),
                               terms.node(in, v[in.a], v[in.b], v[in.c]),
                               v[in.b].isCounted || v[in.c].isCounted}
                : v[in.a].low ? v[in.b]
                              : v[in.c];
    return;
  case Code::SignCast:
  case Code::ZeroCast:
    v[in.dst] = evaluateCast(in, v[in.a]);
    return;
  case Code::Rank:
    result = view(thread, in.extra).rank;
    break;
  case Code::Size:
    result = view(thread, in.extra).size;
    break;
  case Code::Translate: {
    const TeamView &from = view(thread, in.extra),
                   &to = view(thread, in.target);
    int64_t rank = v[in.a].low;
    if (!isKnown(in.a) || rank < 0 || rank >= from.size)
      break;
    int64_t distance = from.world(rank) - to.first;
    if (distance % to.stride == 0)
      result = distance / to.stride;
    break;
  }
  case Code::BlockId:
    result = thread.block;
    break;
  case Code::NumBlocks:
    result = shape.blocks;
    break;
  case Code::Epoch:
    result = thread.launch;
    break;
  case Code::PeerAt: {
    const TeamView &team = view(thread, in.extra);
    int64_t step = in.width ? team.size - v[in.a].low : v[in.a].low;
    result = (team.rank + step) % team.size;
    break;
  }
  default:
    if (!isKnown(in.a) || !isKnown(in.b)) {
      v[in.dst] = evaluateUnknown(in, v[in.a], v[in.b]);
      return;
    }
    if (auto value = compute(in.code, v[in.a].low, v[in.b].low, in.width))
      result = normalize(*value, in.width);
    break;
  }
  v[in.dst] = result ? Interval::of(*result) : Interval();
}

//===----------------------------------------------------------------------===//
// Integers of data
//===----------------------------------------------------------------------===//

Interval Machine::find(Leaf leaf, int64_t rank, unsigned width) {
  if (shape.model)
    return Interval::of(normalize(shape.model->of(rank, shape.ranks), width));
  if (leaf.argument < 0)
    return {};
  Interval any;
  if (width < 64)
    any = width == 1 ? Interval{0, 1}
                     : Interval{llvm::minIntN(width), llvm::maxIntN(width)};
  any.term = terms.leaf(leaf);
  return any;
}

/// The host gives the same scalars to all ranks, in each launch others.
void Machine::findScalars(Thread &thread) {
  for (Register root : program.roots)
    set(thread, root,
        Interval::of(shape.roots.of(thread.launch) % shape.ranks));
  for (auto [at, scalar] : llvm::enumerate(program.scalars)) {
    auto [reg, argument] = scalar;
    if (!shape.scalars.empty()) {
      size_t turn = (thread.launch - 1) % shape.scalars.size();
      set(thread, reg, Interval::of(shape.scalars[turn][at]));
      continue;
    }
    Leaf leaf;
    leaf.argument = argument;
    leaf.launch = thread.launch;
    KernelOp kernel = program.kernel;
    Type type = kernel.getBody().front().getArgument(argument).getType();
    set(thread, reg,
        find(leaf, 0, type.isIndex() ? 64 : type.getIntOrFloatBitWidth()));
  }
}

/// Whether `op` uses what other ranks send, which is not as any data may be.
static bool usesReceived(Operation *op, const Program &program,
                         llvm::SmallPtrSetImpl<Operation *> &visited) {
  if (!visited.insert(op).second)
    return false;
  if (isa<PacketLoadOp, PoisonLoadOp, RecvOp>(op))
    return true;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    if (isa<MemRefType, WindowType>(operand.getType())) {
      auto root = dyn_cast_or_null<BlockArgument>(getMemoryRoot(operand).value);
      return root && isa<WindowType>(root.getType()) &&
             program.arguments[root.getArgNumber()].written;
    }
    Operation *made = operand.getDefiningOp();
    return made && usesReceived(made, program, visited);
  });
}

/// What is computed from data that are not followed, by an op that touches
/// nothing.
Interval Machine::findOpaque(const Thread &thread, const Instruction &in) {
  Operation *op = program.opaque[in.extra];
  llvm::SmallPtrSet<Operation *, 8> visited;
  if (!shape.model || !isMemoryEffectFree(op))
    return {};
  if (usesReceived(op, program, visited)) {
    leavesRange = true;
    return {};
  }
  return find({}, thread.rank, in.width);
}

void Machine::loadInteger(Thread &thread, const Action &action, Bounds bounds) {
  if (action.loads < 0)
    return;
  set(thread, action.loads, Interval());
  const MemoryPlan &memory = action.ranges[0].memory;
  auto peer =
      memory.kind == MemoryPlan::Peer ? get(thread, memory.peer) : std::nullopt;
  bool isOne = memory.argument >= 0 && !bounds.isGuess &&
               (memory.kind == MemoryPlan::Own || peer);
  if (!isOne)
    return;
  int64_t rank = peer ? view(thread, memory.team).world(*peer) : thread.rank;
  if (rank < 0 || rank >= shape.ranks || rankIndex[rank] < 0)
    return;
  size_t part = placeOf(memory.argument, rank);
  if (auto found = joinStored(part, bounds))
    return set(thread, action.loads, *found);
  if (bounds.anywhere || bounds.end != bounds.begin + 1)
    return;
  // Nobody knows what another way of writing has left there.
  if (shape.model && overwritten[part])
    return;
  Leaf leaf;
  leaf.argument = memory.argument;
  bool isSame = program.arguments[memory.argument].isSame;
  leaf.rank = isSame ? -1 : rank;
  leaf.offset = bounds.begin;
  leaf.version = overwritten[part];
  leaf.launch = thread.launch;
  unsigned width = widthOf(getElementTypeOrSelf(action.op->getResult(0)));
  set(thread, action.loads, find(leaf, isSame ? 0 : rank, width));
  if (contents)
    noteInteger(thread, action, bounds);
}

/// Elements among which data choose one, or that one op stores, at most.
static constexpr int64_t mostChoices = 1024;

void Machine::storeInteger(Thread &thread, const Action &action,
                           const RangePlan &range, Bounds bounds) {
  if (!range.write || range.memory.argument < 0 ||
      !program.arguments[range.memory.argument].isRead)
    return;
  forParts(thread, range.memory, [&](int64_t rank) {
    size_t part = placeOf(range.memory.argument, rank);
    bool isKnown = action.stores >= 0 && !bounds.anywhere && !bounds.isGuess &&
                   thread.unsure.empty() && range.rows == 1 &&
                   bounds.end - bounds.begin <= mostChoices &&
                   (range.count < 0 || get(thread, range.count));
    if (isKnown) {
      for (int64_t at = bounds.begin; at < bounds.end; ++at)
        stored[part][at] = getInterval(thread, action.stores);
      steps += bounds.end - bounds.begin;
      return;
    }
    if (action.stores >= 0 && !bounds.isGuess)
      return mayStore(thread, part, bounds, getInterval(thread, action.stores));
    forgetIntegers(part);
  });
}

void Machine::forgetIntegers(size_t part) {
  stored[part].clear();
  ++overwritten[part];
}

std::optional<Interval> Machine::joinStored(size_t part, Bounds bounds) const {
  const std::map<int64_t, Interval> &known = stored[part];
  auto it = known.find(bounds.begin);
  if (it == known.end() || bounds.end - bounds.begin > mostChoices)
    return std::nullopt;
  Interval found = it->second;
  if (bounds.end == bounds.begin + 1)
    return found;
  for (int64_t at = bounds.begin; at < bounds.end; ++at, ++it) {
    if (it == known.end() || it->first != at)
      return std::nullopt;
    found.low = std::min(found.low, it->second.low);
    found.high = std::max(found.high, it->second.high);
  }
  found.term = 0;
  found.isCounted = true;
  return found;
}

void Machine::mayStore(const Thread &thread, size_t part, Bounds bounds,
                       Interval value) {
  // Of a loop that is not followed to its end, later iterations go on.
  bool goesOn = llvm::any_of(thread.unsure, [&](const UnknownBranch &unsure) {
    return program.guards[unsure.guard].body >= 0 && !unsure.isCounted;
  });
  auto first = stored[part].lower_bound(bounds.begin);
  for (auto it = first; it != stored[part].end() && it->first < bounds.end;
       ++it) {
    Interval &old = it->second;
    ++steps;
    if (value.low < old.low)
      old.low = goesOn ? INT64_MIN : value.low;
    if (value.high > old.high)
      old.high = goesOn ? INT64_MAX : value.high;
    old.term = 0;
    old.isCounted = true;
  }
  ++overwritten[part];
}

/// The host may pass other arrays to each launch, and writes its windows. Data
/// of a model stay.
void Machine::forgetArrays(const Thread &thread) {
  if (shape.model)
    return;
  for (auto [argument, plan] : llvm::enumerate(program.arguments))
    if (plan.isRead && (!plan.shared || plan.host))
      stored[placeOf(static_cast<int32_t>(argument), thread.rank)].clear();
}
