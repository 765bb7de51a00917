//===- Expression.h - Expressions of `comms.computes` -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's attribute `comms.computes` defines element i of an output in terms
// of all ranks' arguments before the launch:
//
//   comms.computes = {y = "sum(r, x(r)[i]) / size"}
//   comms.computes = {y = "all_reduce(avg, x)"}
//   comms.computes = "all_reduce(avg)"
//
// docs/Spec.md has the grammar.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_EXPRESSION_H
#define COMMSIR_LOWERING_CHECK_EXPRESSION_H

#include "lowering/check/Contents.h"

#include <memory>

namespace mlir::comms::check {

/// Name of the attribute: a dictionary of strings by output name, or the single
/// collective that the kernel computes.
inline constexpr const char kComputesAttr[] = "comms.computes";

/// Expected contents of some elements.
struct Expected {
  Ref ref;
  /// Applies to elements up to this one.
  int64_t end = 0;
};

/// Numbers that are known of one launch: of arguments, and `comms.extent`.
struct GivenNumbers {
  llvm::DenseMap<int32_t, int64_t> arguments;
  int64_t extent = 0;
};

/// Whether launches of the kernel give `comms.extent`.
bool isExtentGiven(KernelOp kernel);

class Expression {
public:
  /// Parses `text`, the expected contents of argument `output` of `kernel`.
  /// Emits an error at the kernel.
  static FailureOr<Expression> parse(KernelOp kernel, int32_t output,
                                     llvm::StringRef text);
  /// Evaluates elements from `begin` on, up to the result's `end`. Sets
  /// `problem` on errors such as an index outside of its array.
  Expected evaluate(Values &values, int64_t rank, int64_t ranks, int32_t launch,
                    const GivenNumbers &given, int64_t begin, int64_t end,
                    std::string &problem) const;
  /// Arguments that it reads.
  const llvm::SmallVector<int32_t> &inputs() const { return reads; }

  int32_t output = -1;

  struct Node {
    enum Kind : uint8_t {
      Number,
      Real,
      Element,
      Rank,
      Size,
      Extent,
      Variable,
      Access,
      Binary,
      Negate,
      Call,
      Reduce,
      Where
    } kind = Number;
    int64_t number = 0;
    double real = 0;
    /// Binary: the operator. Call and Reduce: the name.
    std::string name;
    /// Access: the argument; Variable and Reduce: the variable.
    int32_t index = -1;
    std::vector<Node> operands;
  };

private:
  KernelOp kernel;
  Node root;
  llvm::SmallVector<int32_t> reads;
};

/// All expressions that the kernel of `program` declares for its outputs; may
/// be empty. Emits an error if one cannot be parsed.
FailureOr<std::vector<Expression>> readComputes(const Program &program);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_EXPRESSION_H
