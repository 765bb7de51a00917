//===- Terms.h - Names of unknown integers ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An integer that data decide is not known, but it has a name: what it was
// computed from, and how. Two integers of one name are equal on all data. Names
// are hash-consed: equal names are one number.
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

/// An integer that the program finds and does not compute.
struct Leaf {
  /// The kernel argument; -1: none.
  int32_t argument = -1;
  /// World rank whose memory it is in; -1: the same on all ranks.
  int64_t rank = -1;
  /// Element, and how often that memory had been written, as a whole.
  int64_t offset = 0, version = 0;
  /// The launch that it belongs to; 0: all.
  int32_t launch = 0;
};

class Terms {
public:
  int32_t leaf(const Leaf &leaf);
  /// A leaf that is no other.
  int32_t fresh();
  /// What an instruction computes; 0 where an operand has no name.
  int32_t node(const Instruction &in, Interval a, Interval b, Interval c);
  /// How a term was made: of a constant, of operands by `code`, or as a leaf.
  struct Definition {
    Code code = Code::Opaque;
    int32_t operands[3] = {};
    bool isConstant = false;
    int64_t constant = 0;
    /// Of a comparison: the predicate.
    int32_t extra = 0;
  };
  Definition describe(int32_t term) const;
  /// Whether nothing but scalars, the same on all ranks, decides it.
  bool isUniform(int32_t term) const { return term && nodes[term].isUniform; }
  /// The integers that a term is made of and that the program finds.
  llvm::ArrayRef<int32_t> leavesOf(int32_t term) const {
    return nodes[term].leaves;
  }
  /// Of a leaf: the argument and the launch.
  std::pair<int32_t, int32_t> sourceOf(int32_t leaf) const {
    return {nodes[leaf].argument, nodes[leaf].launch};
  }
  /// The term's value where `valueOf` says those of its leaves; absent: it has
  /// none.
  std::optional<int64_t>
  evaluate(int32_t term, llvm::function_ref<int64_t(int32_t)> valueOf) const;
  /// Whether the first is at most the second, whatever the data.
  bool isAtMost(int32_t term, int32_t bound) const;
  /// Whether one may have any value whatever the other has.
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
    int32_t argument = -1, launch = 0;
    /// Leaves that it is made of, in rising order.
    llvm::SmallVector<int32_t, 2> leaves;
  };
  int32_t intern(const Key &key, Code code, llvm::ArrayRef<int32_t> operands);
  /// The operand's name; a known one has that of its value. 0: none.
  int32_t nameOf(Interval value);

  std::map<Key, int32_t> known;
  std::vector<Node> nodes = std::vector<Node>(1);
  int64_t freshLeaves = 0;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_TERMS_H
