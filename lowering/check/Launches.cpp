//===- Launches.cpp - After how many launches a program repeats -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Launches.h"

#include "lowering/check/ProgramBuilder.h"

#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {

/// Periods and starts beyond this are not followed.
constexpr int64_t most = int64_t(1) << 20;

/// An integer as a function of the launch's number e: from `start` on it grows
/// by `drift` in each `period` launches, and is drift / period * e and between
/// low and high more.
struct Shape {
  int64_t period = 1, start = 1;
  /// Absent: not known, but the same in each period.
  std::optional<int64_t> drift = 0;
  /// The ends of int64_t: not bounded.
  int64_t low = INT64_MIN, high = INT64_MAX;
  /// It does not repeat, or not soon enough.
  bool isIrregular = false;

  bool isConstant() const { return period == 1 && drift == 0 && !isIrregular; }
  bool isBounded() const { return low > INT64_MIN && high < INT64_MAX; }
};

int64_t saturated(__int128 value) {
  return value <= INT64_MIN   ? INT64_MIN
         : value >= INT64_MAX ? INT64_MAX
                              : static_cast<int64_t>(value);
}

int64_t plus(int64_t a, int64_t b) {
  // An end that is not bounded stays so.
  for (int64_t end : {INT64_MIN, INT64_MAX})
    if (a == end || b == end)
      return end;
  return saturated(static_cast<__int128>(a) + b);
}

class Analysis {
public:
  Analysis(int64_t ranks, int64_t blocks, scf::ForOp loop = {})
      : ranks(ranks), blocks(blocks), loop(loop) {}
  Shape of(Value value);

private:
  static Shape constant(int64_t low, int64_t high) {
    Shape made;
    made.low = low;
    made.high = high;
    return made;
  }
  /// Of something that may be any number in any launch.
  static Shape irregular() {
    Shape made;
    made.isIrregular = true;
    return made;
  }
  /// Of something that has the period of both.
  static Shape both(const Shape &a, const Shape &b);
  static std::optional<int64_t> growth(const Shape &shape, int64_t period);
  static Shape add(const Shape &a, const Shape &b, int sign);
  static Shape multiply(const Shape &a, const Shape &b);
  static Shape scale(const Shape &a, int64_t factor);
  static Shape divide(const Shape &a, int64_t divisor);
  static Shape remainder(const Shape &a, int64_t divisor);
  static Shape bits(const Shape &a, const Shape &b);
  /// From which launch on the faster of the two is beyond the other.
  static std::optional<int64_t> crossing(const Shape &a, const Shape &b);
  static Shape order(const Shape &a, const Shape &b);
  static Shape choose(const Shape &condition, const Shape &a, const Shape &b);
  static Shape extreme(const Shape &a, const Shape &b, bool isMost);
  Shape binary(Code code, const Shape &a, const Shape &b);
  Shape ofArgument(BlockArgument argument);
  Shape ofResult(OpResult result);
  Shape carried(Value init, Value next, Value self);

  Shape ofCounter();
  bool mayVary(Operation *op);

  int64_t ranks, blocks;
  /// Integers are functions of its iteration, not of the launch.
  scf::ForOp loop;
  llvm::DenseMap<Value, Shape> known;
  /// How many calls of `of` run within each other.
  unsigned depth = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Shape Analysis::both(const Shape &a, const Shape &b) {
  Shape made;
  made.isIrregular = a.isIrregular || b.isIrregular;
  made.start = std::max(a.start, b.start);
  made.period = std::lcm(a.period, b.period);
  if (made.period > most || made.start > most)
    made.isIrregular = true, made.period = 1;
  return made;
}

/// How much it grows in `period`, a multiple of its own.
std::optional<int64_t> Analysis::growth(const Shape &shape, int64_t period) {
  if (!shape.drift)
    return std::nullopt;
  return saturated(static_cast<__int128>(*shape.drift) *
                   (period / shape.period));
}

Shape Analysis::add(const Shape &a, const Shape &b, int sign) {
  Shape made = both(a, b);
  auto left = growth(a, made.period), right = growth(b, made.period);
  made.drift = std::nullopt;
  if (left && right)
    made.drift = *left + sign * *right;
  made.low = plus(a.low, sign > 0        ? b.low
                         : b.isBounded() ? -b.high
                                         : INT64_MIN);
  made.high = plus(a.high, sign > 0        ? b.high
                           : b.isBounded() ? -b.low
                                           : INT64_MAX);
  return made;
}

Shape Analysis::scale(const Shape &a, int64_t factor) {
  Shape made = a;
  if (a.drift)
    made.drift = saturated(static_cast<__int128>(*a.drift) * factor);
  made.low = INT64_MIN, made.high = INT64_MAX;
  if (a.isBounded()) {
    auto [low, high] =
        std::minmax({saturated(static_cast<__int128>(a.low) * factor),
                     saturated(static_cast<__int128>(a.high) * factor)});
    made.low = low, made.high = high;
  }
  return made;
}

Shape Analysis::multiply(const Shape &a, const Shape &b) {
  if (b.isConstant() && b.low == b.high)
    return scale(a, b.low);
  if (a.isConstant() && a.low == a.high)
    return scale(b, a.low);
  Shape made = both(a, b);
  bool grows = a.drift != 0 && b.drift != 0;
  made.isIrregular |= grows;
  // A constant that differs between ranks: each has a growth of its own.
  made.drift = std::nullopt;
  if (a.drift == 0 && b.drift == 0)
    made.drift = 0;
  return made;
}

Shape Analysis::divide(const Shape &a, int64_t divisor) {
  Shape made = a;
  made.low = INT64_MIN, made.high = INT64_MAX;
  if (a.isBounded())
    made.low = a.low / divisor - 1, made.high = a.high / divisor + 1;
  if (a.drift == 0)
    return made;
  int64_t common = a.drift ? std::gcd(divisor, std::abs(*a.drift)) : 1;
  made.period = a.period * (divisor / common);
  if (a.drift)
    made.drift = *a.drift / common;
  // Below 0 quotients are rounded another way.
  if (a.drift && *a.drift > 0 && a.low < 0 && a.low > INT64_MIN)
    made.start = std::max(made.start, -a.low * a.period / *a.drift + 1);
  return both(made, made).isIrregular ? both(made, made) : made;
}

Shape Analysis::remainder(const Shape &a, int64_t divisor) {
  Shape made = a;
  made.low = 1 - divisor, made.high = divisor - 1;
  made.drift = 0;
  if (a.drift == 0)
    return made;
  int64_t common = a.drift ? std::gcd(divisor, std::abs(*a.drift)) : 1;
  made.period = a.period * (divisor / common);
  if (a.drift && *a.drift > 0 && a.low < 0 && a.low > INT64_MIN)
    made.start = std::max(made.start, -a.low * a.period / *a.drift + 1);
  if (made.period > most)
    made.isIrregular = true, made.period = 1;
  return made;
}

/// Bitwise operations: with a constant, the lowest bits alone repeat or change.
Shape Analysis::bits(const Shape &a, const Shape &b) {
  if (a.drift == 0 && b.drift == 0)
    return both(a, b);
  const Shape &moving = a.drift == 0 ? b : a, &fixed = a.drift == 0 ? a : b;
  Shape made = both(a, b);
  if (fixed.drift != 0 || !fixed.isBounded() || fixed.low < 0) {
    made.isIrregular = true;
    return made;
  }
  int64_t range = static_cast<int64_t>(llvm::NextPowerOf2(fixed.high));
  Shape low = remainder(moving, range);
  made = both(low, fixed);
  made.drift = growth(moving, made.period);
  return made;
}

std::optional<int64_t> Analysis::crossing(const Shape &a, const Shape &b) {
  if (!a.drift || !b.drift || !a.isBounded() || !b.isBounded())
    return std::nullopt;
  // Rates are compared as fractions of one period.
  __int128 rate = static_cast<__int128>(*a.drift) * b.period -
                  static_cast<__int128>(*b.drift) * a.period;
  if (rate == 0)
    return std::nullopt;
  __int128 gap = std::max<__int128>(static_cast<__int128>(a.high) - b.low,
                                    static_cast<__int128>(b.high) - a.low);
  if (gap < 0)
    gap = -gap;
  gap *= static_cast<__int128>(a.period) * b.period;
  return saturated(gap / (rate < 0 ? -rate : rate) + 2);
}

Shape Analysis::order(const Shape &a, const Shape &b) {
  Shape made = both(a, b);
  made.drift = 0;
  made.low = 0, made.high = 1;
  if (auto at = crossing(a, b)) {
    made.period = 1;
    made.start = std::max(made.start, *at);
    made.isIrregular |= made.start > most;
  }
  return made;
}

Shape Analysis::choose(const Shape &condition, const Shape &a, const Shape &b) {
  Shape made = both(both(a, b), condition);
  made.low = std::min(a.low, b.low);
  made.high = std::max(a.high, b.high);
  auto left = growth(a, made.period), right = growth(b, made.period);
  made.drift = left == right ? left : std::nullopt;
  return made;
}

Shape Analysis::extreme(const Shape &a, const Shape &b, bool isMost) {
  std::optional<int64_t> at = crossing(a, b);
  if (!at)
    return choose(Shape(), a, b);
  // From there on it is the one of them.
  bool aGrows = static_cast<__int128>(*a.drift) * b.period >
                static_cast<__int128>(*b.drift) * a.period;
  Shape made = aGrows == isMost ? a : b;
  made.start = std::max({a.start, b.start, *at});
  made.isIrregular |= made.start > most;
  return made;
}

Shape Analysis::binary(Code code, const Shape &a, const Shape &b) {
  bool isNumber = b.isConstant() && b.low == b.high && b.low > 0;
  switch (code) {
  case Code::Add:
    return add(a, b, 1);
  case Code::Sub:
    return add(a, b, -1);
  case Code::Mul:
    return multiply(a, b);
  case Code::DivS:
  case Code::DivU:
  case Code::CeilDivS:
  case Code::CeilDivU:
  case Code::FloorDivS:
    if (isNumber)
      return divide(a, b.low);
    break;
  case Code::RemS:
  case Code::RemU:
    if (isNumber)
      return remainder(a, b.low);
    // Of ranks or blocks there are so many at most.
    if (b.isConstant() && b.isBounded() && b.low > 0 && b.high <= 64) {
      Shape made = a;
      int64_t all = 1;
      for (int64_t n = b.low; n <= b.high && all < most; ++n)
        all = std::lcm(all, n);
      return remainder(made, all);
    }
    break;
  case Code::And:
    if (isNumber && llvm::isPowerOf2_64(b.low + 1))
      return remainder(a, b.low + 1);
    return bits(a, b);
  case Code::Or:
  case Code::Xor:
    return bits(a, b);
  case Code::Shl:
    if (isNumber && b.low < 62)
      return scale(a, int64_t(1) << b.low);
    break;
  case Code::ShrS:
  case Code::ShrU:
    if (isNumber && b.low < 62)
      return divide(a, int64_t(1) << b.low);
    break;
  case Code::MinS:
  case Code::MinU:
    return extreme(a, b, false);
  case Code::MaxS:
  case Code::MaxU:
    return extreme(a, b, true);
  default:
    break;
  }
  Shape made = both(a, b);
  made.isIrregular |= a.drift != 0 || b.drift != 0;
  return made;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Shape Analysis::of(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  // A longer chain of operations would overflow the stack.
  constexpr unsigned deepest = 1000;
  if (depth == deepest)
    return irregular();
  ++depth;
  // Where it needs itself, it is taken for a constant, and looked at again.
  known[value] = Shape();
  APInt number;
  Shape made;
  if (matchPattern(value, m_ConstantInt(&number))) {
    if (number.getSignificantBits() <= 64) {
      int64_t known = number.getBitWidth() == 1 ? number.getZExtValue()
                                                : number.getSExtValue();
      made = constant(known, known);
    }
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    made = ofArgument(argument);
  } else {
    made = ofResult(cast<OpResult>(value));
  }
  --depth;
  return known[value] = made;
}

/// What a loop carries: as it begins, and as each iteration leaves it.
Shape Analysis::carried(Value init, Value next, Value self) {
  Shape first = of(init);
  known[self] = first;
  Shape then = of(next);
  Shape made = choose(Shape(), first, then);
  made.low = INT64_MIN, made.high = INT64_MAX;
  if (made.period != first.period || made.drift != first.drift)
    made.drift = made.drift == 0 ? made.drift : std::nullopt;
  return made;
}

/// The counter of the loop, by iterations.
Shape Analysis::ofCounter() {
  Shape step = of(loop.getStep()), first = of(loop.getLowerBound());
  if (!step.isConstant() || step.low != step.high || step.low <= 0)
    return irregular();
  Shape made = add(first, step, -1);
  made.drift = step.low;
  return made;
}

/// Whether an op of the loop that reads memory may find another integer in each
/// iteration.
bool Analysis::mayVary(Operation *op) {
  if (!loop || !loop->isProperAncestor(op) ||
      op->hasTrait<OpTrait::ConstantLike>() ||
      isa<RankOp, SizeOp, BlockIdOp, NumBlocksOp, TeamOp, TeamSplitOp>(op))
    return false;
  SmallVector<Access> reads;
  getAccesses(op, reads);
  if (reads.empty())
    return true;
  auto walked = loop.getBody()->walk([&](Operation *other) {
    SmallVector<Access> accesses;
    getAccesses(other, accesses);
    bool writes = llvm::any_of(accesses, [&](const Access &access) {
      return access.isWrite() && llvm::any_of(reads, [&](const Access &read) {
               return getMemoryRoot(read.memory).value ==
                      getMemoryRoot(access.memory).value;
             });
    });
    return writes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

Shape Analysis::ofArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (loop && parent == loop.getOperation())
    return number == 0 ? ofCounter() : irregular();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (number > 0)
      return carried(loop.getInitArgs()[number - 1],
                     loop.getBody()->getTerminator()->getOperand(number - 1),
                     argument);
    // Each iteration, over the launches, counts from the lower bound on.
    Shape first = of(loop.getLowerBound()), end = of(loop.getUpperBound());
    Shape made = choose(Shape(), first, first);
    made.start = std::max(first.start, end.start);
    made.high = first.drift == 0 && end.drift == 0 ? end.high : INT64_MAX;
    return made;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (argument.getOwner() == loop.getBeforeBody())
      return carried(loop.getInits()[number],
                     loop.getYieldOp()->getOperand(number), argument);
    return of(loop.getConditionOp().getArgs()[number]);
  }
  if (isa<ForPeersOp>(parent))
    return constant(0, ranks - 1);
  return {};
}

Shape Analysis::ofResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto code = binaryCode(op))
    return binary(*code, of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::CmpIOp, index::CmpOp>(op))
    return order(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return choose(of(op->getOperand(0)), of(op->getOperand(1)),
                  of(op->getOperand(2)));
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
          arith::IndexCastUIOp, index::CastSOp, index::CastUOp,
          TranslateRankOp>(op)) {
    Shape made = of(op->getOperand(0));
    unsigned width = widthOf(result.getType());
    // Integers of 32 bits and more are not followed until they wrap around.
    if (width < 32 && width > 1 && made.drift != 0)
      return remainder(made, int64_t(1) << width);
    return made;
  }
  if (isa<EpochOp>(op)) {
    // Within a launch it is the same.
    if (loop)
      return constant(1, INT64_MAX);
    Shape made = constant(0, 0);
    made.drift = 1;
    return made;
  }
  if (isa<RankOp>(op))
    return constant(0, ranks - 1);
  if (isa<SizeOp>(op))
    return constant(1, ranks);
  if (isa<BlockIdOp>(op))
    return constant(0, blocks - 1);
  if (isa<NumBlocksOp>(op))
    return constant(blocks, blocks);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carried(loop.getInitArgs()[number],
                   loop.getBody()->getTerminator()->getOperand(number),
                   loop.getRegionIterArg(number));
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return of(loop.getConditionOp().getArgs()[number]);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return choose(of(branch.getCondition()),
                  of(branch.thenYield()->getOperand(number)),
                  of(branch.elseYield()->getOperand(number)));
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op)) {
    Shape made =
        of(branch.getDefaultBlock().getTerminator()->getOperand(number));
    for (Region &region : branch.getCaseRegions())
      made = choose(of(branch.getArg()), made,
                    of(region.front().getTerminator()->getOperand(number)));
    return made;
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op);
      extract && loop && loop->isProperAncestor(op))
    if (auto load = loadedInteger(op))
      return mayVary(load) ? irregular() : Shape();
  return mayVary(op) ? irregular() : Shape();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

int64_t LaunchPattern::launches() const { return start + period; }

/// Integers by which an op names ranks, cells and elements, or says how often
/// something is done. The value of a signal or wait and the flag of packets are
/// none of them.
static SmallVector<Value> findPlaces(Operation *op) {
  Value amount = storedInteger(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case<SignalOp, PutSignalOp>([&](auto one) { amount = one.getValue(); })
      .Case<WaitSignalOp, WaitSignalFromOp, WaitCounterOp>(
          [&](auto one) { amount = one.getValue(); })
      .Case<PacketStoreOp, PacketLoadOp>(
          [&](auto one) { amount = one.getFlag(); });
  SmallVector<Value> places;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  for (Value operand : op->getOperands())
    if (widthOf(operand.getType()) && operand != amount)
      places.push_back(operand);
  for (Value operand : op->getOperands())
    if (auto peer = operand.getDefiningOp<PeerOp>())
      places.push_back(peer.getPeer());
  return places;
}

int32_t
mlir::comms::check::findLoopPeriod(scf::ForOp loop,
                                   llvm::function_ref<bool(Value)> isNeeded) {
  constexpr int64_t mostRanks = int64_t(1) << 20, mostIterations = 5;
  Analysis analysis(mostRanks, mostRanks, loop);
  int64_t start = 1, period = 1;
  auto walked = loop.getBody()->walk([&](Operation *op) {
    SmallVector<Value> decides;
    if (isAction(op))
      decides = findPlaces(op);
    if (Value stored = storedInteger(op); stored && isNeeded(stored))
      decides.push_back(stored);
    if (op->getNumRegions() || isa<scf::ConditionOp>(op))
      llvm::append_range(decides, op->getOperands());
    for (Value value : decides) {
      if (!widthOf(value.getType()))
        continue;
      Shape shape = analysis.of(value);
      if (shape.isIrregular || shape.drift != 0)
        return WalkResult::interrupt();
      start = std::max(start, shape.start);
      period = std::min(std::lcm(period, shape.period), most);
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted() || start + period > mostIterations)
    return 0;
  return static_cast<int32_t>(start + period);
}

LaunchPattern mlir::comms::check::findLaunchPattern(const Program &program,
                                                    int64_t ranks,
                                                    int64_t blocks) {
  Analysis analysis(ranks, blocks);
  LaunchPattern pattern;
  for (Value value : program.values) {
    Shape shape = analysis.of(value);
    if (shape.isIrregular) {
      if (!pattern.irregular)
        pattern.irregular = value.getDefiningOp();
      continue;
    }
    pattern.start = std::max(pattern.start, shape.start);
    pattern.period = std::min(std::lcm(pattern.period, shape.period), most);
  }
  program.kernel->walk([&](Operation *op) {
    if (isAction(op) || isa<scf::ForOp>(op))
      for (Value place : findPlaces(op))
        pattern.hasMovingPlaces |= analysis.of(place).drift != 0;
  });
  // A wait for less than 1 waits for nothing.
  program.kernel->walk([&](Operation *op) {
    if (!isa<WaitSignalOp, WaitSignalFromOp, WaitCounterOp>(op))
      return;
    Shape want = analysis.of(op->getOperand(2));
    if (want.drift && *want.drift > 0 && want.low < 0 && want.low > INT64_MIN)
      pattern.start =
          std::max(pattern.start, -want.low * want.period / *want.drift + 1);
  });
  pattern.start = std::min(pattern.start, most);
  return pattern;
}

std::vector<int64_t> mlir::comms::check::extentsOf(const Program &program) {
  int64_t most = program.mostExtent;
  if (program.extents.empty() || most < 2)
    return {most};
  // Launches give multiples of this.
  KernelOp kernel = program.kernel;
  auto given = kernel->getAttrOfType<IntegerAttr>("comms.run_time_extent");
  int64_t step = given ? std::clamp<int64_t>(given.getInt(), 1, most) : 1;
  std::vector<int64_t> extents = {most, step};
  if (int64_t between = llvm::alignTo(most / 2 + 1, step); between < most)
    extents.push_back(between);
  return extents;
}

std::vector<Roots> mlir::comms::check::rootsOf(const Program &program,
                                               int64_t ranks) {
  std::vector<Roots> roots = {{}};
  if (program.roots.empty())
    return roots;
  for (int64_t rank = 1; rank < ranks; ++rank) {
    if (ranks > mostRoots && rank > 1 && rank < ranks - 1)
      continue;
    roots.push_back({rank, 0});
    roots.push_back({0, rank});
  }
  return roots;
}
