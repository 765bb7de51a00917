//===- Values.h - What elements hold, as terms ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element holds an element of an argument, as a rank had it before a launch,
// or what ops computed from such elements. Terms say which, hash-consed: equal
// terms are one node.
//
// Places are kept relative. A node stands for x[i] + y[i + 64] wherever it is;
// a reference to it says how far i has moved. Neighbors that were computed
// alike have one reference, so that a whole array is most often one piece.
//
// Terms are compared in two ways. Nodes keep the order of ops: what has equal
// nodes has equal bits. Their sums (`Sum`) do not, and see through roundings:
// what has equal sums is equal in real numbers.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_VALUES_H
#define COMMSIR_LOWERING_CHECK_VALUES_H

#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir::comms::check {

/// A node at a place. Element j of what holds it is the node with its moving
/// places at `shift` + j, and its fixed places at `at`.
struct Ref {
  int32_t node = 0;
  int64_t shift = 0, at = 0;
  bool operator==(const Ref &other) const = default;
  auto operator<=>(const Ref &other) const = default;
};

/// A linear combination of nodes that no addition or scaling made.
struct Sum {
  double constant = 0;
  llvm::SmallVector<std::pair<Ref, double>, 2> parts;
};

std::string printNumber(double value);

class Values {
public:
  Values();

  /// Element i of the argument, as `rank` had it before launch `launch`; before
  /// launch 0: before all.
  Ref input(int32_t argument, int64_t rank, int32_t launch);
  Ref constant(double value);
  /// A scalar argument of a launch, the same on all ranks.
  Ref scalar(int32_t argument, int32_t launch);
  /// i.
  Ref number();
  /// Something that is not followed, and equals nothing else, by `op`.
  Ref unknown(Operation *op);
  /// `name` of its operands, element by element.
  Ref apply(llvm::StringRef name, llvm::ArrayRef<Ref> operands);
  /// Values combined by `kind` ("add", "max", …) in an order that is not known.
  Ref combineAnyhow(llvm::StringRef kind, llvm::ArrayRef<Ref> operands);
  /// A row of `length` elements combined by `kind` ("add", …); `parts` are
  /// where pieces of it end, and what they hold.
  Ref reduceRow(llvm::StringRef kind,
                llvm::ArrayRef<std::pair<int64_t, Ref>> parts);
  /// Element `element` of what holds `ref`, wherever it is repeated.
  Ref pin(Ref ref, int64_t element);
  /// One value or the other, as a condition says.
  Ref choose(Ref condition, Ref yes, Ref no);
  /// The element of an argument whose number data say: `number`, fixed, plus
  /// the place.
  Ref gather(Ref array, Ref number, int64_t begin);

  /// `ref` as it is seen by what begins `distance` elements later.
  Ref moved(Ref ref, int64_t distance) const;
  bool isUnknown(Ref ref) const { return nodes[ref.node].isUnknown; }
  /// An order that is not known decides its bits.
  bool isUnordered(Ref ref) const { return nodes[ref.node].isUnordered; }
  bool isConstant(Ref ref, double &value) const;
  /// The op that made something in it unknown; null: it is not known which.
  Operation *findUnknownOp(Ref ref) const { return nodes[ref.node].unknownBy; }
  /// Where the last summand or operand was added; null: by none.
  Operation *origin(Ref ref) const { return nodes[ref.node].origin; }
  /// Nodes that are made from now on are made by `op`.
  void setOrigin(Operation *op) { current = op; }

  /// The same bits, whatever the order in which operands of what commutes, and
  /// of minima and their kin, stand. (But for the sign of zero.)
  Ref canonical(Ref ref);
  /// The value in real numbers.
  Sum sumOf(Ref ref);
  bool areEqual(const Sum &a, const Sum &b) const;

  /// "x(0)[i] + x(1)[i]", with the names of arguments, in terms of launch
  /// `launch`; long sums are cut.
  std::string print(const Sum &sum, int32_t launch,
                    llvm::function_ref<std::string(int32_t)> nameOf);
  std::string print(Ref ref, int32_t launch,
                    llvm::function_ref<std::string(int32_t)> nameOf);
  /// Whether the node is an element of an argument: which, of whom, and when.
  bool isInput(Ref ref, int32_t &argument, int64_t &rank,
               int32_t &launch) const;

  size_t size() const { return nodes.size(); }

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
  /// Makes places relative to the first operand's, which are returned.
  Ref makeRelative(llvm::MutableArrayRef<Ref> operands) const;
  Ref make(Kind kind, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
           llvm::ArrayRef<Ref> operands);
  /// The same, as a node that no addition or scaling made.
  Ref makeReal(Kind kind, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
               llvm::ArrayRef<Ref> operands);
  Ref computeCanonical(int32_t id);
  /// An operand of the node of `ref`, where that is.
  Ref within(Ref operand, Ref ref) const;
  Sum computeSum(int32_t id);
  Sum sumOfApply(const Node &node);
  Sum cut(const Sum &sum, unsigned bits);
  Sum product(const Sum &a, const Sum &b);
  /// Numbers between which a node lies, as far as minima and maxima show.
  std::pair<double, double> boundsOf(Ref ref) const;
  Sum extreme(llvm::StringRef kind, llvm::ArrayRef<Sum> sums);
  /// A sum as one node.
  Ref fold(Sum sum);
  static void order(Sum &sum);
  static Sum atom(Ref ref) { return {0, {{ref, 1.0}}}; }

  std::vector<Node> nodes;
  llvm::DenseMap<int32_t, Ref> canonicals;
  std::unordered_map<std::vector<int64_t>, int32_t, Hash> known;
  llvm::StringMap<int32_t> names;
  /// References to them stay.
  std::deque<std::string> nameTexts;
  int64_t unknowns = 0;
  Operation *current = nullptr;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_VALUES_H
