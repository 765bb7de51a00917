//===- Prover.cpp - Proofs about the indices of a kernel ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/bounds/Prover.h"

#include "lowering/analysis/Accesses.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::bounds;

/// How often values are replaced by their bounds: ends every search.
static constexpr int kMaxReplacements = 6;
/// Sums looked at in one proof: more than any proof that succeeds has needed.
static constexpr int kMaxSums = 4096;

using Lattice = dataflow::IntegerValueRangeLattice;

/// The loop whose counter `value` is, compared as signed numbers.
static scf::ForOp getLoop(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop =
      argument
          ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp())
          : scf::ForOp();
  bool counts =
      loop && argument == loop.getInductionVar() && !loop.getUnsignedCmp();
  return counts ? loop : scf::ForOp();
}

/// Whether MLIR's ranges hold for `op`: they take divisors for not 0, divisions
/// and shifts for defined, and flags for kept. In a run none of these is given.
/// Of divisions that round up or down, those of the least integer are wrong in
/// MLIR 22: -2^63 by 2^61, rounded up, is positive there.
static bool isTotal(Operation *op, ArrayRef<const Lattice *> operands) {
  auto isKnown = [&](unsigned index) {
    return !operands[index]->getValue().isUninitialized();
  };
  auto range = [&](unsigned index) -> const ConstantIntRanges & {
    return operands[index]->getValue().getValue();
  };
  auto mayBe = [&](unsigned index, const APInt &number) {
    const ConstantIntRanges &operand = range(index);
    return operand.umin().ule(number) && number.ule(operand.umax()) &&
           operand.smin().sle(number) && number.sle(operand.smax());
  };
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    if (flags.hasNoSignedWrap() || flags.hasNoUnsignedWrap())
      return false;
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op))
    return isKnown(1) && range(1).umax().ult(range(1).umax().getBitWidth());
  bool isUnsigned = isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op);
  if (!isUnsigned && !isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp,
                          arith::FloorDivSIOp>(op))
    return !isa_and_present<affine::AffineDialect, index::IndexDialect>(
        op->getDialect());
  if (!isKnown(1))
    return false;
  unsigned width = range(1).umax().getBitWidth();
  if (isa<arith::CeilDivSIOp, arith::FloorDivSIOp>(op) &&
      (!isKnown(0) || mayBe(0, APInt::getSignedMinValue(width))))
    return false;
  return !mayBe(1, APInt::getZero(width)) &&
         (isUnsigned || !mayBe(1, APInt::getAllOnes(width)));
}

/// How often the range of a result may grow before it is taken for unbounded.
static constexpr unsigned kMaxGrowths = 16;

namespace {
/// MLIR's analysis, but it ends: that one takes what a loop itself yields for
/// unbounded when it grows, and follows by ones, to the largest integer, what
/// grows by way of a loop inside it.
class EndingRangeAnalysis : public dataflow::IntegerRangeAnalysis {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EndingRangeAnalysis)
  using IntegerRangeAnalysis::IntegerRangeAnalysis;

  LogicalResult visitOperation(Operation *op,
                               ArrayRef<const Lattice *> operands,
                               ArrayRef<Lattice *> results) override {
    if (!isTotal(op, operands)) {
      setAllToEntryStates(results);
      return success();
    }
    SmallVector<IntegerValueRange> before = llvm::map_to_vector(
        results, [](Lattice *result) { return result->getValue(); });
    if (failed(IntegerRangeAnalysis::visitOperation(op, operands, results)))
      return failure();
    for (auto [result, range] : llvm::zip_equal(results, before))
      if (!(result->getValue() == range) && ++growths[result] > kMaxGrowths)
        setToEntryState(result);
    return success();
  }

  /// MLIR takes every counter of a loop for one that is compared as signed.
  void visitNonControlFlowArguments(Operation *op,
                                    const RegionSuccessor &successor,
                                    ArrayRef<Lattice *> arguments,
                                    unsigned firstIndex) override {
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop.getUnsignedCmp())
      return setAllToEntryStates(arguments);
    IntegerRangeAnalysis::visitNonControlFlowArguments(op, successor, arguments,
                                                       firstIndex);
  }

private:
  llvm::DenseMap<Lattice *, unsigned> growths;
};
} // namespace

LogicalResult Prover::analyze(KernelOp kernel) {
  solver.load<dataflow::DeadCodeAnalysis>();
  solver.load<dataflow::SparseConstantPropagation>();
  solver.load<EndingRangeAnalysis>();
  return solver.initializeAndRun(kernel);
}

Sum Prover::getSum(Value value, int depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Sum::of(*constant);
  Sum term;
  term.terms[value] = 1;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth || !value.getType().isIndex() ||
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

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

bool Prover::isAtMost(const Sum &sum, int64_t limit) {
  budget = kMaxSums;
  return isAtMost(sum, limit, 0);
}

bool Prover::isAtLeast(const Sum &sum, int64_t limit) {
  Sum negated;
  negated.add(sum, -1);
  return limit != std::numeric_limits<int64_t>::min() &&
         isAtMost(negated, -limit);
}

bool Prover::isExact(const Sum &sum) {
  return getExtreme(sum, /*largest=*/true) &&
         getExtreme(sum, /*largest=*/false);
}

bool Prover::isAtMost(const Sum &sum, int64_t limit, int replacements) {
  if (std::optional<int64_t> bound = getExtreme(sum, /*largest=*/true))
    if (*bound <= limit)
      return true;
  if (replacements == kMaxReplacements || !sum.valid || --budget <= 0)
    return false;
  return llvm::any_of(sum.terms, [&](const auto &term) {
    return isAtMostByBounds(sum, limit, term.first, term.second,
                            replacements + 1) ||
           isAtMostByFacts(sum, limit, term.first, term.second,
                           replacements + 1);
  });
}

bool Prover::isAtMostByBounds(const Sum &sum, int64_t limit, Value value,
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

bool Prover::isAtMostByFacts(const Sum &sum, int64_t limit, Value value,
                             int64_t factor, int replacements) {
  return llvm::any_of(facts, [&](const Sum &fact) {
    const auto *it = fact.terms.find(value);
    if (it == fact.terms.end() ||
        factor == std::numeric_limits<int64_t>::min() ||
        (it->second > 0) == (factor > 0) || factor % it->second != 0)
      return false;
    Sum weaker = sum;
    weaker.add(fact, -(factor / it->second));
    return isAtMost(weaker, limit, replacements);
  });
}

bool Prover::isNotNegative(Value value, int replacements) {
  Sum sum = getSum(value), negated;
  negated.add(sum, -1);
  return isExact(sum) && isAtMost(negated, 0, replacements);
}

//===----------------------------------------------------------------------===//
// What conditions say
//===----------------------------------------------------------------------===//

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
  if (!both || !holds || depth == kMaxDepth)
    return;
  addConditions(both.getLhs(), holds, conditions, depth + 1);
  addConditions(both.getRhs(), holds, conditions, depth + 1);
}

void Prover::enter(Operation *op, bool whole) {
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

void Prover::addFacts(arith::CmpIOp compare, bool holds) {
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
  bool strict = llvm::is_contained({P::slt, P::sgt, P::ult, P::ugt}, predicate);
  addDifference(large, small, strict ? 1 : 0);
  if (predicate == P::eq)
    addDifference(small, large, 0);
}

void Prover::addDifference(const Sum &large, const Sum &small, int64_t slack) {
  Sum fact = large;
  fact.add(small, -1);
  fact.add(Sum::of(slack), -1);
  addFact(fact);
}

void Prover::addFact(const Sum &fact) {
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

//===----------------------------------------------------------------------===//
// What values may be
//===----------------------------------------------------------------------===//

std::optional<int64_t> Prover::getExtreme(const Sum &sum, bool largest) {
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

static void narrowToTeam(Value team, Interval &interval) {
  if (std::optional<int64_t> size = getConstantTeamSize(team))
    interval.narrow(0, *size - 1);
}

/// What the range analysis does not know: sizes of teams.
void Prover::narrowByTeam(Value value, Interval &interval) {
  if (auto rank = value.getDefiningOp<RankOp>())
    return narrowToTeam(rank.getTeam(), interval);
  if (auto rank = value.getDefiningOp<TranslateRankOp>()) {
    // Each rank of a team is one of the world. Another number can become any.
    Interval given = getInterval(rank.getRank());
    std::optional<int64_t> from = getConstantTeamSize(rank.getFrom());
    auto to = rank.getTo().getDefiningOp<TeamOp>();
    if (to && to.getKind() == TeamKind::World && from && given.smallest >= 0 &&
        given.largest < *from)
      narrowToTeam(rank.getTo(), interval);
    return;
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto peers =
            dyn_cast_or_null<ForPeersOp>(argument.getOwner()->getParentOp()))
      narrowToTeam(peers.getTeam(), interval);
}

Interval Prover::getRange(Value value) {
  Interval interval;
  if (!value.getType().isIndex())
    return interval;
  const auto *lattice =
      solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (lattice && !lattice->getValue().isUninitialized()) {
    const ConstantIntRanges &range = lattice->getValue().getValue();
    interval.narrow(range.smin().getSExtValue(), range.smax().getSExtValue());
  }
  narrowByTeam(value, interval);
  return interval;
}

/// Whether `op` leaves 64 bits for some operands in their ranges.
static bool mayOverflow(Operation *op, Interval left, Interval right) {
  for (int64_t a : {left.smallest, left.largest})
    for (int64_t b : {right.smallest, right.largest}) {
      int64_t result;
      if (isa<arith::AddIOp>(op)   ? __builtin_add_overflow(a, b, &result)
          : isa<arith::SubIOp>(op) ? __builtin_sub_overflow(a, b, &result)
                                   : __builtin_mul_overflow(a, b, &result))
        return true;
    }
  return false;
}

bool Prover::isComputedExactly(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth ||
      !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return true;
  Value left = op->getOperand(0), right = op->getOperand(1);
  return !mayOverflow(op, getRange(left), getRange(right)) &&
         isComputedExactly(left, depth + 1) &&
         isComputedExactly(right, depth + 1);
}

int64_t Prover::getStride(scf::ForOp loop) {
  Value first = loop.getLowerBound(), step = loop.getStep();
  int64_t divisor = std::gcd(getDivisor(first), getDivisor(step));
  int64_t powerOfTwo = divisor & -divisor;
  // Numbers that leave 64 bits keep powers of two alone as divisors.
  bool holds = divisor == powerOfTwo ||
               (isComputedExactly(first, 0) && isComputedExactly(step, 0));
  return holds ? divisor : powerOfTwo;
}

/// A step that is not positive goes below the lower bound, and one that leaves
/// the type wraps around to there.
bool Prover::staysInBounds(scf::ForOp loop) {
  Type type = loop.getInductionVar().getType();
  if (loop.getUnsignedCmp() || !type.isIndex())
    return false;
  Interval upper = getRange(loop.getUpperBound()),
           step = getRange(loop.getStep());
  int64_t after;
  return step.smallest > 0 &&
         !__builtin_add_overflow(std::max<int64_t>(upper.largest, 1) - 1,
                                 step.largest, &after);
}

Interval Prover::getInterval(Value value) {
  Interval interval = getRange(value);
  if (!value.getType().isIndex())
    return interval;
  if (scf::ForOp loop = getLoop(value)) {
    int64_t stride = getStride(loop);
    if (stride > 1 && interval.largest >= 0)
      interval.largest -= interval.largest % stride;
  }
  Interval told = ranges.lookup(value);
  interval.narrow(told.smallest, told.largest);
  return interval;
}
