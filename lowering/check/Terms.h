//===- Terms.h - Names of unknown integers ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The value of an integer that depends on data is unknown, but the integer has
// a name: a term that describes how it was computed. Two integers with the same
// name are equal for all data. Terms are hash-consed: equal terms have the same
// number.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_TERMS_H
#define COMMSIR_LOWERING_CHECK_TERMS_H

#include "lowering/check/Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>
#include <map>
#include <optional>

namespace mlir::comms::check {

/// An integer that the program reads rather than computes.
struct Leaf {
  /// The kernel argument; -1: none.
  int32_t argument = -1;
  /// World rank whose memory it is in; -1: the same on all ranks.
  int64_t rank = -1;
  /// The element, and the number of earlier writes to that memory as a whole.
  int64_t offset = 0, version = 0;
  /// The launch in which it has this value; 0: all launches.
  int32_t launch = 0;
};

class Terms {
public:
  int32_t leaf(const Leaf &leaf);
  /// A new leaf, different from all others, in a range.
  int32_t fresh(Interval range = {});
  /// The range of a leaf.
  Interval rangeOf(int32_t leaf) const {
    return {nodes[leaf].low, nodes[leaf].high};
  }
  /// The result of an instruction; 0 if an operand has no name.
  int32_t node(const Instruction &in, Interval a, Interval b, Interval c);
  /// How a term is defined: as a constant, as `code` of operands, or as a leaf.
  struct Definition {
    Code code = Code::Opaque;
    int32_t operands[3] = {};
    bool isConstant = false;
    int64_t constant = 0;
    /// The predicate of a comparison; the width that a cast is from.
    int32_t extra = 0;
    /// The result's, in bits.
    unsigned width = 64;
  };
  Definition describe(int32_t term) const;
  /// Whether it depends only on scalars, which are the same on all ranks.
  bool isUniform(int32_t term) const { return term && nodes[term].isUniform; }
  /// The leaves that a term depends on.
  llvm::ArrayRef<int32_t> leavesOf(int32_t term) const {
    return nodes[term].leaves;
  }
  /// What a leaf is; argument -1: a number that no argument holds.
  const Leaf &sourceOf(int32_t leaf) const { return nodes[leaf].source; }
  /// The term's value if its leaves have the values `valueOf`; none: it has no
  /// value.
  std::optional<int64_t>
  evaluate(int32_t term, llvm::function_ref<int64_t(int32_t)> valueOf) const;
  /// Whether `term` <= `bound` for all data.
  bool isAtMost(int32_t term, int32_t bound) const;
  /// Whether the values of `a` and `b` are independent of each other.
  bool isIndependent(int32_t a, int32_t b) const;

private:
  using Key = std::array<int64_t, 6>;
  struct Node {
    Code code = Code::Opaque;
    int32_t operands[3] = {};
    bool isConstant = false;
    int64_t constant = 0;
    int32_t extra = 0;
    unsigned width = 64;
    bool isUniform = false;
    /// Of a leaf.
    Leaf source;
    int64_t low = INT64_MIN, high = INT64_MAX;
    /// The leaves that it depends on, in ascending order.
    llvm::SmallVector<int32_t, 2> leaves;
  };
  int32_t intern(const Key &key, Code code, llvm::ArrayRef<int32_t> operands);
  /// The operand's name; a known integer's name is its value. 0: none.
  int32_t nameOf(Interval value);

  std::map<Key, int32_t> known;
  std::vector<Node> nodes = std::vector<Node>(1);
  int64_t freshLeaves = 0;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_TERMS_H
