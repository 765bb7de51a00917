//===- Reference.h - The results that collectives define --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The definition of collectives (docs/Spec.md, Collectives) in terms. For each
// row, it applies `produce` on each rank, combines the results in rank order,
// and applies `consume`. It does not depend on algorithms, channels or blocks.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_REFERENCE_H
#define COMMSIR_LOWERING_CHECK_REFERENCE_H

#include "lowering/check/Contents.h"
#include "lowering/check/Expression.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::comms::check {

class Reference {
public:
  /// Of a kernel for `ranks` ranks.
  Reference(KernelOp kernel, Values &values, int64_t ranks)
      : kernel(kernel), values(values), ranks(ranks), contents(values) {}

  /// Whether the kernel is made of collectives over all ranks alone; if not,
  /// `problem` says what it has.
  bool prepare(std::string &problem);
  /// Arguments that are read before they are written, and those that are
  /// written.
  llvm::ArrayRef<int32_t> inputs() const { return read.getArrayRef(); }
  llvm::ArrayRef<int32_t> outputs() const { return written.getArrayRef(); }
  /// Carries out launch `launch`: all launches, in order.
  void run(int32_t launch);
  /// What the argument holds from element `begin` on.
  Expected expected(int32_t argument, int64_t rank, int64_t begin, int64_t end);

private:
  /// An operand: an argument, and elements of one part and of one row.
  struct Array {
    int32_t argument = -1;
    int64_t elements = 0, part = 0, row = 0;
  };
  /// A collective on its way: its arrays, how many ranks' parts they hold, and
  /// its rows a part.
  struct Plan {
    SmallVector<Array> inputs, outputs, args;
    int64_t rows = 1;
  };

  int32_t argumentOf(Value value);
  Plan plan(CollectiveOpInterface op);
  void carryOut(CollectiveOpInterface op);
  void carryOut(SendRecvOp op);
  Tile rowOf(const Array &array, int64_t rank, int64_t part, int64_t row);
  /// What travels of a row of rank `rank`.
  SmallVector<Tile> produce(CollectiveOpInterface op, const Plan &plan,
                            int64_t rank, int64_t part, int64_t row);
  SmallVector<Tile> evaluate(Region &region, llvm::ArrayRef<Tile> arguments);

  KernelOp kernel;
  Values &values;
  int64_t ranks;
  Contents contents;
  llvm::SetVector<int32_t> read, written;
  std::vector<Operation *> collectives;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_REFERENCE_H
