//===- AssertBounds.cpp - Checks of offsets that cannot be proven ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each access the pass tries to prove
//   0 <= count <= tile size,  0 <= offset,  offset + count <= elements,
// checks at run time what it cannot prove, and refuses what cannot hold.
//
// A quantity is a sum of SSA values with constant factors, so that what occurs
// in an offset and in a count cancels. A sum is bounded by the ranges that
// MLIR's integer range analysis gives for the values in it; where that is not
// enough, a value is replaced by what bounds it: a minimum or maximum by its
// operands, a loop's counter by the loop's bounds, and whatever an enclosing
// scf.if compares by what it is compared with. So
//   load %m[%t * 256] valid min(256, 1000 - %t * 256)
// is proven for a %m of 1000 elements, which no range of each alone could do.
//
//===----------------------------------------------------------------------===//

#include "lowering/Accesses.h"
#include "lowering/Passes.h"
#include "lowering/UncheckedOps.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <numeric>

namespace mlir::comms {
#define GEN_PASS_DEF_ASSERTBOUNDS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

/// How deep expressions are followed, and how often values are replaced by
/// their bounds: ends every search, also in cyclic IR.
static constexpr int maxDepth = 16;
static constexpr int maxReplacements = 6;
/// Sums looked at in one proof: more than any proof that succeeds has needed.
static constexpr int maxSums = 4096;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
/// A sum of values with factors, and a constant. `valid` is false once a number
/// has left 64 bits: then nothing is known.
struct Sum {
  int64_t constant = 0;
  llvm::SmallMapVector<Value, int64_t, 4> terms;
  bool valid = true;

  static Sum of(int64_t constant) {
    Sum sum;
    sum.constant = constant;
    return sum;
  }

  /// Adds `factor * other`.
  void add(const Sum &other, int64_t factor) {
    valid &= other.valid && accumulate(constant, other.constant, factor);
    for (auto [value, coefficient] : other.terms) {
      int64_t &mine = terms[value];
      valid &= accumulate(mine, coefficient, factor);
    }
    terms.remove_if([](const auto &term) { return term.second == 0; });
  }

  bool isConstant() const { return valid && terms.empty(); }

private:
  /// into += value * factor, or false when that overflows.
  static bool accumulate(int64_t &into, int64_t value, int64_t factor) {
    int64_t product;
    return !__builtin_mul_overflow(value, factor, &product) &&
           !__builtin_add_overflow(into, product, &into);
  }
};

/// Smallest and largest value.
struct Interval {
  int64_t smallest = std::numeric_limits<int64_t>::min();
  int64_t largest = std::numeric_limits<int64_t>::max();

  void narrow(int64_t low, int64_t high) {
    smallest = std::max(smallest, low);
    largest = std::min(largest, high);
  }
};
} // namespace

/// A number that divides `value` for certain, at least 1.
static int64_t getDivisor(Value value, int depth = 0) {
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    // 0 is a multiple of everything; the smallest number has no absolute value.
    bool usable = *constant != std::numeric_limits<int64_t>::min();
    return usable ? std::abs(*constant) : 1;
  }
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth ||
      !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return 1;
  int64_t left = getDivisor(op->getOperand(0), depth + 1);
  int64_t right = getDivisor(op->getOperand(1), depth + 1);
  if (!isa<arith::MulIOp>(op))
    return std::gcd(left, right);
  int64_t product;
  return __builtin_mul_overflow(left, right, &product)
             ? std::max<int64_t>(left, 1)
             : product;
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

namespace {
/// Proves inequalities about the index values of one kernel.
class Prover {
public:
  LogicalResult analyse(KernelOp kernel) {
    solver.load<dataflow::DeadCodeAnalysis>();
    solver.load<dataflow::SparseConstantPropagation>();
    solver.load<dataflow::IntegerRangeAnalysis>();
    return solver.initializeAndRun(kernel);
  }

  /// Takes what the conditions around `op` say; proofs are then about values
  /// as they are where `op` runs. With `whole`, what a condition compares is
  /// not taken apart into a sum, neither there nor in offsets: the comparison
  /// then says something even if the sum might leave 64 bits.
  void enter(Operation *op, bool whole) {
    facts.clear();
    ranges.clear();
    compared.clear();
    SmallVector<std::pair<arith::CmpIOp, bool>> conditions;
    for (Operation *child = op; Operation *parent = child->getParentOp();
         child = parent)
      if (auto branch = dyn_cast<scf::IfOp>(parent))
        addConditions(branch.getCondition(),
                      child->getParentRegion() == &branch.getThenRegion(),
                      conditions, 0);
    for (auto [compare, holds] : conditions)
      if (whole)
        compared.insert(compare->operand_begin(), compare->operand_end());
    for (auto [compare, holds] : conditions)
      addFacts(compare, holds);
  }

  /// `value` as a sum: additions, subtractions and products with constants are
  /// followed, everything else is a term.
  Sum getSum(Value value, int depth = 0) {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return Sum::of(*constant);
    Sum term;
    term.terms[value] = 1;
    Operation *op = value.getDefiningOp();
    if (!op || depth == maxDepth || !value.getType().isIndex() ||
        compared.contains(value))
      return term;
    if (isa<arith::AddIOp, arith::SubIOp>(op)) {
      Sum sum = getSum(op->getOperand(0), depth + 1);
      sum.add(getSum(op->getOperand(1), depth + 1),
              isa<arith::AddIOp>(op) ? 1 : -1);
      return sum;
    }
    if (isa<arith::MulIOp>(op)) {
      Sum left = getSum(op->getOperand(0), depth + 1);
      Sum right = getSum(op->getOperand(1), depth + 1);
      if (left.isConstant())
        std::swap(left, right);
      if (right.isConstant()) {
        Sum product;
        product.add(left, right.constant);
        return product;
      }
    }
    return term;
  }

  /// Whether `sum` <= `limit`, or >= `limit`, for certain.
  bool isAtMost(const Sum &sum, int64_t limit) {
    budget = maxSums;
    return isAtMost(sum, limit, 0);
  }
  bool isAtLeast(const Sum &sum, int64_t limit) {
    Sum negated;
    negated.add(sum, -1);
    return limit != std::numeric_limits<int64_t>::min() &&
           isAtMost(negated, -limit);
  }

  /// Whether the sum's value is what the machine computes: no 64-bit overflow.
  bool isExact(const Sum &sum) {
    return getExtreme(sum, /*largest=*/true) &&
           getExtreme(sum, /*largest=*/false);
  }

private:
  /// The same after some replacements.
  bool isAtMost(const Sum &sum, int64_t limit, int replacements) {
    if (std::optional<int64_t> bound = getExtreme(sum, /*largest=*/true))
      if (*bound <= limit)
        return true;
    if (replacements == maxReplacements || !sum.valid || --budget <= 0)
      return false;
    return llvm::any_of(sum.terms, [&](const auto &term) {
      return isAtMostByBounds(sum, limit, term.first, term.second,
                              replacements + 1) ||
             isAtMostByFacts(sum, limit, term.first, term.second,
                             replacements + 1);
    });
  }

  /// A bound of `sum` from the ranges of its terms, or nothing when that leaves
  /// 64 bits.
  std::optional<int64_t> getExtreme(const Sum &sum, bool largest) {
    int64_t total = sum.constant;
    for (auto [value, factor] : sum.terms) {
      Interval range = getInterval(value);
      bool upper = (factor > 0) == largest;
      int64_t extreme = upper ? range.largest : range.smallest, product;
      if (__builtin_mul_overflow(extreme, factor, &product) ||
          __builtin_add_overflow(total, product, &total))
        return std::nullopt;
    }
    return sum.valid ? std::optional(total) : std::nullopt;
  }

  /// The proof with the term `factor * value` replaced by a bound of `value`:
  /// from above when the factor is positive, else from below.
  bool isAtMostByBounds(const Sum &sum, int64_t limit, Value value,
                        int64_t factor, int replacements) {
    bool above = factor > 0;
    auto with = [&](const Sum &bound) {
      if (!isExact(bound))
        return false;
      Sum replaced = sum;
      replaced.terms.erase(value);
      replaced.add(bound, factor);
      return isAtMost(replaced, limit, replacements);
    };
    if (scf::ForOp loop = getLoop(value)) {
      if (!above)
        return with(getSum(loop.getLowerBound()));
      Sum last = getSum(loop.getUpperBound());
      last.add(Sum::of(1), -1);
      return with(last);
    }
    Operation *op = value.getDefiningOp();
    auto operand = [&](unsigned index) {
      return with(getSum(op->getOperand(index)));
    };
    // An unsigned minimum is at most each operand that is not negative.
    auto usable = [&](unsigned index) {
      return isa<arith::MinSIOp>(op) ||
             isNotNegative(op->getOperand(index), replacements);
    };
    if (isa_and_nonnull<arith::MinSIOp, arith::MinUIOp>(op) && above)
      return (operand(0) && usable(0)) || (operand(1) && usable(1));
    if (isa_and_nonnull<arith::MaxSIOp>(op) && !above)
      return operand(0) || operand(1);
    // Otherwise it is one of them.
    if (isa_and_nonnull<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp,
                        arith::MaxUIOp>(op))
      return operand(0) && operand(1);
    if (isa_and_nonnull<arith::SelectOp>(op))
      return operand(1) && operand(2);
    return false;
  }

  /// The proof with a fact added that cancels the term `factor * value`: a fact
  /// is not negative, so adding it makes the sum no smaller.
  bool isAtMostByFacts(const Sum &sum, int64_t limit, Value value,
                       int64_t factor, int replacements) {
    return llvm::any_of(facts, [&](const Sum &fact) {
      auto it = fact.terms.find(value);
      if (it == fact.terms.end() ||
          factor == std::numeric_limits<int64_t>::min() ||
          (it->second > 0) == (factor > 0) || factor % it->second != 0)
        return false;
      Sum weaker = sum;
      weaker.add(fact, -(factor / it->second));
      return isAtMost(weaker, limit, replacements);
    });
  }

  /// Lists the comparisons of indices that `condition` is made of, with whether
  /// each holds.
  static void
  addConditions(Value condition, bool holds,
                SmallVectorImpl<std::pair<arith::CmpIOp, bool>> &conditions,
                int depth) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (compare && compare.getLhs().getType().isIndex())
      conditions.emplace_back(compare, holds);
    auto both = condition.getDefiningOp<arith::AndIOp>();
    if (!both || !holds || depth == maxDepth)
      return;
    addConditions(both.getLhs(), holds, conditions, depth + 1);
    addConditions(both.getRhs(), holds, conditions, depth + 1);
  }

  /// Adds what a comparison says when it is `holds`.
  void addFacts(arith::CmpIOp compare, bool holds) {
    using P = arith::CmpIPredicate;
    P predicate = compare.getPredicate();
    if (!holds)
      predicate = arith::invertPredicate(predicate);
    Sum small = getSum(compare.getLhs()), large = getSum(compare.getRhs());
    if (llvm::is_contained({P::sgt, P::sge, P::ugt, P::uge}, predicate))
      std::swap(small, large);
    if (predicate == P::ne || !isExact(small) || !isExact(large))
      return;
    if (llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, predicate)) {
      // What is below a number that is not negative is not negative itself.
      if (!isAtLeast(large, 0))
        return;
      addFact(small);
    }
    bool strict =
        llvm::is_contained({P::slt, P::sgt, P::ult, P::ugt}, predicate);
    addDifference(large, small, strict ? 1 : 0);
    if (predicate == P::eq)
      addDifference(small, large, 0);
  }

  /// Adds the fact `large` - `small` - `slack` >= 0.
  void addDifference(const Sum &large, const Sum &small, int64_t slack) {
    Sum fact = large;
    fact.add(small, -1);
    fact.add(Sum::of(slack), -1);
    addFact(fact);
  }

  /// Adds that `fact` is not negative. One about a single value is its range.
  void addFact(const Sum &fact) {
    if (!fact.valid)
      return;
    facts.push_back(fact);
    if (fact.terms.size() != 1)
      return;
    constexpr int64_t least = std::numeric_limits<int64_t>::min();
    auto [value, factor] = fact.terms.front();
    if (factor == 1 && fact.constant != least)
      ranges[value].smallest = std::max(ranges[value].smallest, -fact.constant);
    if (factor == -1)
      ranges[value].largest = std::min(ranges[value].largest, fact.constant);
  }

  bool isNotNegative(Value value, int replacements) {
    Sum sum = getSum(value), negated;
    negated.add(sum, -1);
    return isExact(sum) && isAtMost(negated, 0, replacements);
  }

  /// The loop whose counter `value` is, compared as signed numbers.
  scf::ForOp getLoop(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto loop =
        argument
            ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp())
            : scf::ForOp();
    bool counts =
        loop && argument == loop.getInductionVar() && !loop.getUnsignedCmp();
    return counts ? loop : scf::ForOp();
  }

  Interval getInterval(Value value) {
    Interval interval;
    if (!value.getType().isIndex())
      return interval;
    const auto *lattice =
        solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
    if (lattice && !lattice->getValue().isUninitialized()) {
      const ConstantIntRanges &range = lattice->getValue().getValue();
      interval.narrow(range.smin().getSExtValue(), range.smax().getSExtValue());
    }
    narrowByMeaning(value, interval);
    Interval told = ranges.lookup(value);
    interval.narrow(told.smallest, told.largest);
    return interval;
  }

  /// What the range analysis does not know: sizes of teams, and that a counter
  /// is a multiple of its loop's step.
  void narrowByMeaning(Value value, Interval &interval) {
    if (auto rank = value.getDefiningOp<RankOp>())
      return narrowToTeam(rank.getTeam(), interval);
    if (auto rank = value.getDefiningOp<TranslateRankOp>())
      return narrowToTeam(rank.getTo(), interval);
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto peers =
              dyn_cast_or_null<ForPeersOp>(argument.getOwner()->getParentOp()))
        return narrowToTeam(peers.getTeam(), interval);
    if (scf::ForOp loop = getLoop(value)) {
      int64_t step = std::gcd(getDivisor(loop.getLowerBound()),
                              getDivisor(loop.getStep()));
      if (step > 1 && interval.largest >= 0)
        interval.largest -= interval.largest % step;
    }
  }

  static void narrowToTeam(Value team, Interval &interval) {
    if (std::optional<int64_t> size = getConstantTeamSize(team))
      interval.narrow(0, *size - 1);
  }

  /// Sums that are not negative.
  SmallVector<Sum> facts;
  /// What they say of single values.
  llvm::SmallDenseMap<Value, Interval> ranges;
  /// Values that are not taken apart.
  llvm::SmallDenseSet<Value> compared;
  int budget = 0;
  DataFlowSolver solver{DataFlowConfig().setInterprocedural(false)};
};
} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// What users call the memory: an argument's name, or what kind it is.
static std::string describe(Value memory) {
  MemoryRoot root = getMemoryRoot(memory);
  auto argument = dyn_cast<BlockArgument>(root.value);
  auto kernel =
      argument ? dyn_cast_or_null<KernelOp>(argument.getOwner()->getParentOp())
               : KernelOp();
  if (kernel)
    return kernel.getArgumentName(argument.getArgNumber());
  return root.kind == MemoryRoot::Scratch ? "scratch memory" : "memory";
}

/// The access that `record` tells of.
static Access getRecorded(RecordAccessOp record) {
  Access access;
  access.kind = record.getKind();
  access.memory = record.getMemref();
  access.offset = record.getOffset();
  access.dynamicCount = record.getCount();
  return access;
}

namespace {
/// A range [offset, offset + count) that has to lie in [0, limit). Where a
/// value is null the constant counts.
struct Bound {
  Operation *op;
  std::string what;
  Value offset, count, limit;
  int64_t constantOffset = 0, constantCount = 0, constantLimit = 0;
};

struct AssertBounds : mlir::comms::impl::AssertBoundsBase<AssertBounds> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Prover prover;
    if (failed(prover.analyse(kernel)))
      return signalPassFailure();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) { ops.push_back(op); });
    bool ok = true;
    for (Operation *op : ops)
      ok &= succeeded(refuseUnchecked(op));
    if (!ok)
      return signalPassFailure();
    for (Operation *op : ops)
      ok &= succeeded(visit(prover, op));
    if (!ok)
      signalPassFailure();
  }

  /// All accesses and cells of one op.
  LogicalResult visit(Prover &prover, Operation *op) {
    SmallVector<Access, 2> accesses;
    getAccesses(op, accesses);
    // What is told of an access has to be checked before it is told.
    if (auto record = dyn_cast<RecordAccessOp>(op))
      accesses.push_back(getRecorded(record));
    for (const Access &access : accesses)
      if (failed(visitAccess(prover, op, access)))
        return failure();
    return success(succeeded(visitVector(prover, op)) &&
                   succeeded(visitCell(prover, op)));
  }

  LogicalResult visitAccess(Prover &prover, Operation *op,
                            const Access &access);
  LogicalResult visitVector(Prover &prover, Operation *op);
  LogicalResult visitCell(Prover &prover, Operation *op);
};
} // namespace

/// Emits the check of `bound`.
static void emitCheck(const Bound &bound) {
  OpBuilder builder(bound.op);
  Location loc = bound.op->getLoc();
  auto index = [&](Value value, int64_t constant) -> Value {
    return value ? value
                 : arith::ConstantIndexOp::create(builder, loc, constant);
  };
  Value offset = index(bound.offset, bound.constantOffset);
  Value count = index(bound.count, bound.constantCount);
  Value limit = index(bound.limit, bound.constantLimit);
  CheckBoundsOp::create(builder, loc, offset, count, limit, bound.what);
}

namespace {
/// The sums of a bound, as they are where its op runs.
struct BoundSums {
  BoundSums(Prover &prover, const Bound &bound)
      : offset(bound.offset ? prover.getSum(bound.offset)
                            : Sum::of(bound.constantOffset)),
        count(bound.count ? prover.getSum(bound.count)
                          : Sum::of(bound.constantCount)),
        end(offset) {
    end.add(count, 1);
  }
  Sum offset, count, end;
};
} // namespace

/// Whether `bound`, whose limit is a constant, holds for certain.
static bool isProven(Prover &prover, const Bound &bound) {
  for (bool whole : {true, false}) {
    prover.enter(bound.op, whole);
    BoundSums sums(prover, bound);
    if (prover.isAtLeast(sums.offset, 0) && prover.isAtLeast(sums.count, 0) &&
        prover.isAtMost(sums.end, bound.constantLimit))
      return true;
  }
  return false;
}

/// Refuses `bound` if it cannot hold.
static LogicalResult checkPossible(Prover &prover, const Bound &bound) {
  int64_t limit = bound.constantLimit;
  prover.enter(bound.op, /*whole=*/true);
  BoundSums sums(prover, bound);
  bool negative =
      prover.isAtMost(sums.offset, -1) || prover.isAtMost(sums.count, -1);
  bool beyond = limit < std::numeric_limits<int64_t>::max() &&
                prover.isAtLeast(sums.end, limit + 1) &&
                !prover.isAtMost(sums.count, 0);
  if (!prover.isExact(sums.offset) || !prover.isExact(sums.count) ||
      !(negative || beyond))
    return success();
  InFlightDiagnostic error = bound.op->emitOpError()
                             << bound.what << " out of bounds: ";
  if (sums.offset.isConstant())
    error << "offset " << sums.offset.constant;
  else
    error << "every offset that is possible";
  if (sums.count.isConstant())
    error << ", count " << sums.count.constant;
  return error << ", limit " << limit;
}

/// Refuses, proves or checks `bound`, whose limit is a constant.
static LogicalResult settle(Prover &prover, const Bound &bound) {
  if (isProven(prover, bound))
    return success();
  // A record stands before the op that is refused.
  if (!isa<RecordAccessOp>(bound.op) && failed(checkPossible(prover, bound)))
    return failure();
  emitCheck(bound);
  return success();
}

/// Whether the number of tile elements lies in [0, tile size].
static LogicalResult settleValid(Prover &prover, Operation *op,
                                 const Access &access) {
  if (!access.dynamicCount || access.staticCount < 0)
    return success();
  Bound bound;
  bound.op = op;
  bound.count = access.dynamicCount;
  bound.constantLimit = access.staticCount;
  bound.what = "`valid` of a tile";
  return settle(prover, bound);
}

LogicalResult AssertBounds::visitAccess(Prover &prover, Operation *op,
                                        const Access &access) {
  if (access.isWhole())
    return success();
  if (failed(settleValid(prover, op, access)))
    return failure();

  Bound bound;
  bound.op = op;
  bound.what =
      (access.isRead() ? "read of " : "write of ") + describe(access.memory);
  bound.offset = access.offset;
  std::optional<int64_t> limit = access.getLimit();
  bound.constantLimit = limit.value_or(0);
  // Often a whole tile fits, and always where slots are as large as tiles.
  std::optional<int64_t> most = access.getMaximumCount();
  bound.constantCount = most.value_or(0);
  if (limit && most && isProven(prover, bound))
    return success();

  OpBuilder builder(op);
  if (!access.getConstantCount())
    bound.count = access.materializeCount(builder, op->getLoc());
  if (limit)
    return settle(prover, bound);
  Access all;
  all.memory = access.memory;
  bound.limit = all.materializeCount(builder, op->getLoc());
  emitCheck(bound);
  return success();
}

/// Loads and stores of vectors, which are not told to the race detector; masked
/// ones as if all lanes were on.
LogicalResult AssertBounds::visitVector(Prover &prover, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
            vector::MaskedStoreOp>([&](auto access) -> LogicalResult {
        Bound bound;
        bound.op = op;
        bound.what =
            (isa<vector::LoadOp, vector::MaskedLoadOp>(op) ? "read of "
                                                           : "write of ") +
            describe(access.getBase());
        bound.offset = access.getIndices().front();
        VectorType type = access.getVectorType();
        std::optional<int64_t> limit =
            getStaticElements(access.getBase().getType());
        if (type.isScalable() || !limit)
          return op->emitOpError("its size is not known, so its bounds cannot "
                                 "be checked");
        bound.constantCount = type.getNumElements();
        bound.constantLimit = *limit;
        return settle(prover, bound);
      })
      .Default([](Operation *) { return success(); });
}

/// The cells and the index of `op`, if it is of signals or counters.
static std::pair<Value, Value> getCell(Operation *op) {
  using Cell = std::pair<Value, Value>;
  return llvm::TypeSwitch<Operation *, Cell>(op)
      .Case<SignalOp, PutSignalOp, WaitSignalOp, WaitSignalFromOp, ReadSignalOp,
            ResetSignalOp>(
          [](auto o) { return Cell{o.getSignal(), o.getIndex()}; })
      .Case<WaitCounterOp, ReadCounterOp, ResetCounterOp>(
          [](auto o) { return Cell{o.getCounter(), o.getIndex()}; })
      .Case<PutOp>(
          [](PutOp o) { return Cell{o.getCounter(), o.getCounterIndex()}; })
      .Default([](Operation *) { return Cell(); });
}

LogicalResult AssertBounds::visitCell(Prover &prover, Operation *op) {
  auto [cells, index] = getCell(op);
  if (!cells || !index)
    return success();
  Bound bound;
  bound.op = op;
  bound.what = "cell of " + describe(cells);
  bound.offset = index;
  bound.constantCount = 1;
  auto signal = dyn_cast<SignalType>(cells.getType());
  bound.constantLimit = signal ? signal.getCount()
                               : cast<CounterType>(cells.getType()).getCount();
  return settle(prover, bound);
}
