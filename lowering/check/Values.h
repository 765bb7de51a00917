//===- Values.h - Terms for the contents of elements ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Terms describe the contents of elements: an element of an argument, as a rank
// had it before a launch, or the result of ops on such elements. Terms are
// hash-consed: equal terms are one node.
//
// Positions are relative. A node represents x[i] + y[i + 64] for any i, and a
// reference to the node gives the shift of i. Neighbors that were computed in
// the same way share one reference, so a whole array is usually one piece.
//
// There are two comparisons. Nodes keep the order of ops: equal nodes mean
// equal bits. Their sums (`Sum`) ignore the order and rounding: equal sums mean
// equal real numbers.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_VALUES_H
#define COMMSIR_LOWERING_CHECK_VALUES_H

#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir::comms::check {

/// A node at a position. Element j of an array with this reference is the node
/// with its moving positions at `shift` + j and its fixed positions at `at`.
struct Ref {
  int32_t node = 0;
  int64_t shift = 0, at = 0;
  bool operator==(const Ref &other) const = default;
  auto operator<=>(const Ref &other) const = default;
};

/// A linear combination of nodes that are not sums or multiples themselves.
struct Sum {
  double constant = 0;
  llvm::SmallVector<std::pair<Ref, double>, 2> parts;
};

std::string printNumber(double value);

class Values {
public:
  /// Returns the name of an argument.
  using NameOf = llvm::function_ref<std::string(int32_t)>;

  Values();

  /// Element i of the argument, as `rank` had it before launch `launch`. Launch
  /// 0: before all launches.
  Ref input(int32_t argument, int64_t rank, int32_t launch);
  Ref constant(double value);
  /// A scalar argument of a launch, the same on all ranks.
  Ref scalar(int32_t argument, int32_t launch);
  /// i.
  Ref number();
  /// A result of `op` that the checker does not model. It equals no other
  /// value.
  Ref unknown(Operation *op);
  /// The op `name` applied to the operands, element by element.
  Ref apply(llvm::StringRef name, llvm::ArrayRef<Ref> operands);
  /// Values combined by `kind` ("add", "max", …) in an unknown order.
  Ref combineAnyhow(llvm::StringRef kind, llvm::ArrayRef<Ref> operands);
  /// A row combined by `kind` ("add", …). `parts` gives the end and contents of
  /// each piece of the row.
  Ref reduceRow(llvm::StringRef kind,
                llvm::ArrayRef<std::pair<int64_t, Ref>> parts);
  /// Element `element` of an array with the reference `ref`, repeated at all
  /// positions.
  Ref pin(Ref ref, int64_t element);
  /// Element `element` of an array with the reference `ref`, with the positions
  /// of its leaves fixed: equal for equal elements, whether an op computed one
  /// element or a whole array. Rows are spelled out if they are short.
  Ref atElement(Ref ref, int64_t element);
  /// `ref` where `condition` holds, or does not hold.
  Ref assume(Ref ref, Ref condition, bool holds);
  /// Selects `yes` or `no` by a condition.
  Ref choose(Ref condition, Ref yes, Ref no);
  /// The same of values in which the condition is decided already.
  Ref chooseDecided(Ref condition, Ref yes, Ref no);
  /// The value of an element (`atElement`) if every element of an argument has
  /// a random value that `seed` determines; from seed 16 on, one of `special`.
  /// Ops without a known meaning are random functions of their operands. `done`
  /// has what was computed before with the same seed.
  double sample(Ref ref, uint64_t seed, llvm::ArrayRef<double> special,
                std::map<Ref, double> &done) const;
  /// The constants in terms, and 0, 1 and -1.
  std::vector<double> constantsIn(llvm::ArrayRef<Ref> refs) const;
  /// The element of an argument at a position that depends on data: `number`,
  /// which is fixed, plus the position.
  Ref gather(Ref array, Ref number, int64_t begin);

  /// `ref` for an array that begins `distance` elements later.
  Ref moved(Ref ref, int64_t distance) const;
  bool isUnknown(Ref ref) const { return nodes[ref.node].isUnknown; }
  /// Whether its bits depend on an unknown order.
  bool isUnordered(Ref ref) const { return nodes[ref.node].isUnordered; }
  bool isConstant(Ref ref, double &value) const;
  /// The op that made a part of it unknown; null: that op is not known.
  Operation *findUnknownOp(Ref ref) const { return nodes[ref.node].unknownBy; }
  /// The op that added the last summand or operand; null: none.
  Operation *origin(Ref ref) const { return nodes[ref.node].origin; }
  /// Sets the op that creates the nodes from now on.
  void setOrigin(Operation *op) { current = op; }

  /// A form that is the same for any order of operands of commutative ops,
  /// including minima and maxima. It has the same bits, except for the sign of
  /// zero.
  Ref canonical(Ref ref);
  /// The value as a real number.
  Sum sumOf(Ref ref);
  bool areEqual(const Sum &a, const Sum &b) const;
  /// Whether two sums are equal once products of sums are multiplied out; false
  /// also if there are too many terms.
  bool areEqualExpanded(const Sum &a, const Sum &b);

  /// "x(0)[i] + x(1)[i]", with the names of arguments, as of launch `launch`.
  /// Truncates long sums.
  std::string print(const Sum &sum, int32_t launch, NameOf nameOf);
  std::string print(Ref ref, int32_t launch, NameOf nameOf);
  /// Whether the node is an element of an argument. Sets the argument, rank and
  /// launch.
  bool isInput(Ref ref, int32_t &argument, int64_t &rank,
               int32_t &launch) const;

  size_t size() const { return nodes.size(); }

  /// Arguments whose elements are the same on all ranks: rank 0's.
  llvm::DenseSet<int32_t> sameOnRanks;

private:
  enum class Kind : uint8_t {
    Input,
    Constant,
    Scalar,
    Number,
    Unknown,
    Apply,
    Row,
    Pin,
    Gather
  };
  struct Node {
    Kind kind = Kind::Unknown;
    bool moves = false, isFixed = false;
    bool isUnknown = false, isUnordered = false, hasSum = false;
    int32_t name = 0;
    /// Input: argument, rank, launch. Scalar: argument, launch. Row: ends.
    llvm::SmallVector<int64_t, 3> numbers;
    double value = 0;
    llvm::SmallVector<Ref, 2> operands;
    Operation *unknownBy = nullptr, *origin = nullptr;
    Sum sum;
  };
  struct Hash {
    size_t operator()(const std::vector<int64_t> &key) const;
  };

  int32_t intern(std::vector<int64_t> key, Node node);
  int32_t nameId(llvm::StringRef name);
  /// Makes positions relative to the first operand's, and returns that one's.
  Ref makeRelative(llvm::MutableArrayRef<Ref> operands) const;
  Ref make(Kind kind, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
           llvm::ArrayRef<Ref> operands);
  /// The same, as a node that is not a sum or multiple.
  Ref makeReal(Kind kind, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
               llvm::ArrayRef<Ref> operands);
  void findConstants(Ref ref, llvm::DenseSet<int32_t> &seen,
                     std::vector<double> &into) const;
  /// The opposite of a condition that is one.
  std::optional<Ref> negated(Ref condition) const;
  /// Products of factors, sorted, and how often each is added.
  using Polynomial = std::map<std::vector<Ref>, double>;
  std::optional<Polynomial> expand(const Sum &sum);
  std::optional<Polynomial> expandFactor(Ref factor);
  Ref computeElement(Ref ref);
  double computeSample(Ref ref, uint64_t seed, llvm::ArrayRef<double> special,
                       std::map<Ref, double> &done) const;
  std::string printList(llvm::StringRef name, Ref ref, int32_t launch,
                        NameOf nameOf);
  /// An operand of the node of `ref`, as a sum.
  std::string printOperand(Ref operand, Ref ref, int32_t launch, NameOf nameOf);
  /// `place` is the text behind the argument and rank of an input.
  std::string printInput(const Node &leaf, const std::string &place,
                         int32_t launch, NameOf nameOf);
  std::string printPin(Ref ref, int32_t launch, NameOf nameOf);
  std::string printApply(Ref ref, int32_t launch, NameOf nameOf);
  Ref atElementOfRow(const Node &node, Ref ref, int64_t element);
  Ref atElementOfGather(const Node &node, Ref ref, int64_t element);
  Ref assume(Ref ref, const Sum &condition, bool holds,
             std::map<Ref, Ref> &done);
  Ref computeCanonical(int32_t id);
  /// An operand of the node of `ref`, at the position of `ref`.
  Ref within(Ref operand, Ref ref) const;
  Sum computeSum(int32_t id);
  Sum sumOfApply(const Node &node);
  Sum cut(const Sum &sum, unsigned bits);
  Sum product(const Sum &a, const Sum &b);
  /// Lower and upper bound of a node, from minima and maxima.
  std::pair<double, double> boundsOf(Ref ref) const;
  Sum extreme(llvm::StringRef kind, llvm::ArrayRef<Sum> sums);
  /// A sum as one node.
  Ref fold(Sum sum);
  static void order(Sum &sum);
  /// Whether two factors are one, except for rounding.
  static bool areClose(double a, double b);
  /// A factor as a number that is the same for factors that differ by rounding.
  static int64_t coarse(double value);
  static Sum atom(Ref ref) { return {0, {{ref, 1.0}}}; }

  std::vector<Node> nodes;
  llvm::DenseMap<int32_t, Ref> canonicals;
  /// Results of `atElement` for element 0.
  std::map<Ref, Ref> elements;
  std::unordered_map<std::vector<int64_t>, int32_t, Hash> known;
  llvm::StringMap<int32_t> names;
  /// References to its elements stay valid.
  std::deque<std::string> nameTexts;
  int64_t unknowns = 0;
  Operation *current = nullptr;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_VALUES_H
