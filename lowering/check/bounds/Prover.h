//===- Prover.h - Proofs about the indices of a kernel ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A quantity is a sum of SSA values with constant factors, so that terms that
// occur in both an offset and a count cancel. MLIR's integer range analysis
// bounds the values of a sum. If that does not suffice, the prover replaces a
// value by its bounds: a minimum or maximum by its operands, a loop counter by
// the loop's bounds, and a value that an enclosing scf.if compares by the other
// operand. So
//   load %m[%t * 256] valid min(256, 1000 - %t * 256)
// is proven for a %m of 1000 elements, which the ranges of the separate values
// could not show.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_BOUNDS_PROVER_H
#define COMMSIR_LOWERING_CHECK_BOUNDS_PROVER_H

#include "dialect/Comms.h"
#include "lowering/check/bounds/Sum.h"

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace mlir::comms::bounds {

/// Proves inequalities about the index values of one kernel.
class Prover {
public:
  LogicalResult analyze(KernelOp kernel);

  /// Takes what the conditions around `op` say; proofs are then about values
  /// as they are where `op` runs. With `whole`, what a condition compares is
  /// not taken apart into a sum, neither there nor in offsets: the comparison
  /// then says something even if the sum might leave 64 bits.
  void enter(Operation *op, bool whole);

  /// `value` as a sum: additions, subtractions and products with constants are
  /// followed, everything else is a term.
  Sum getSum(Value value, int depth = 0);

  /// Whether `sum` <= `limit`, or >= `limit`, for certain.
  bool isAtMost(const Sum &sum, int64_t limit);
  bool isAtLeast(const Sum &sum, int64_t limit);

  /// Whether the sum's value is what the machine computes: no 64-bit overflow.
  bool isExact(const Sum &sum);

  /// Whether the counter of `loop` stays between its bounds for certain. Proofs
  /// about what is in the loop take that for given: where it is not certain, it
  /// has to be checked before the loop.
  bool staysInBounds(scf::ForOp loop);

private:
  // Proofs.

  /// The same after some replacements.
  bool isAtMost(const Sum &sum, int64_t limit, int replacements);
  /// The proof with the term `factor * value` replaced by a bound of `value`:
  /// from above when the factor is positive, else from below.
  bool isAtMostByBounds(const Sum &sum, int64_t limit, Value value,
                        int64_t factor, int replacements);
  /// The proof with a fact added that cancels the term `factor * value`: a fact
  /// is not negative, so adding it makes the sum no smaller.
  bool isAtMostByFacts(const Sum &sum, int64_t limit, Value value,
                       int64_t factor, int replacements);
  bool isNotNegative(Value value, int replacements);

  // Facts from conditions.

  /// Adds the facts of a comparison whose result is `holds`.
  void addFacts(arith::CmpIOp compare, bool holds);
  /// Adds the fact `large` - `small` - `slack` >= 0.
  void addDifference(const Sum &large, const Sum &small, int64_t slack);
  /// Adds that `fact` is not negative. One about a single value is its range.
  void addFact(const Sum &fact);

  // Ranges of values.

  /// A bound of `sum` from the ranges of its terms, or nothing when that leaves
  /// 64 bits.
  std::optional<int64_t> getExtreme(const Sum &sum, bool largest);
  /// By the range analysis and by sizes of teams.
  Interval getRange(Value value);
  /// From all facts.
  Interval getInterval(Value value);
  void narrowByTeam(Value value, Interval &interval);
  /// Whether nothing in the expression of `value` leaves 64 bits.
  bool isComputedExactly(Value value, int depth);
  /// A number that divides each value of the loop's counter.
  int64_t getStride(scf::ForOp loop);

  /// Sums that are not negative.
  SmallVector<Sum> facts;
  /// Their consequences for single values.
  llvm::SmallDenseMap<Value, Interval> ranges;
  /// Values that are not taken apart.
  llvm::SmallDenseSet<Value> compared;
  int budget = 0;
  DataFlowSolver solver{DataFlowConfig().setInterprocedural(false)};
};

} // namespace mlir::comms::bounds

#endif // COMMSIR_LOWERING_CHECK_BOUNDS_PROVER_H
