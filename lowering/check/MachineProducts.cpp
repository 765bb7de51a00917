//===- MachineProducts.cpp - Products that read what they write -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's threads multiply together: some write elements of a product while
// others still read its operands. The verifier sees only that both are one
// memref; views of one memory, and a peer that is this rank, show here.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {
/// The rows of a part of a matrix, in elements of its memory.
struct Rows {
  int64_t begin, width, stride, count;
};
} // namespace

/// Whether two parts of one memory have an element in common.
static bool doMeet(const Rows &a, const Rows &b) {
  if (a.width == 0 || b.width == 0)
    return false;
  for (int64_t row = 0; row < a.count; ++row) {
    int64_t begin = a.begin + row * a.stride;
    // The first row of the other part that does not end before this one.
    int64_t other = 0;
    if (b.stride > 0 && begin >= b.begin + b.width)
      other = (begin - b.begin - b.width) / b.stride + 1;
    if (other < b.count && b.begin + other * b.stride < begin + a.width)
      return true;
  }
  return false;
}

bool Machine::mayShareMemory(const Thread &thread, const MemoryPlan &a,
                             const MemoryPlan &b) {
  if (a.kind == MemoryPlan::Scratch || b.kind == MemoryPlan::Scratch)
    return a.kind == b.kind && a.scratch == b.scratch;
  if (a.argument != b.argument)
    return false;
  bool isShared = false;
  forParts(thread, a, [&](int64_t rank) {
    forParts(thread, b, [&](int64_t other) { isShared |= rank == other; });
  });
  return isShared;
}

void Machine::checkProduct(Thread &thread, const Action &action) {
  const RangePlan &product = action.ranges[2];
  auto isPlaced = [](const std::optional<Bounds> &at) {
    return at && !at->anywhere && !at->isGuess;
  };
  auto isKnown = [&](const RangePlan &range) {
    Register peer =
        range.memory.kind == MemoryPlan::Peer ? range.memory.peer : noRegister;
    return llvm::all_of(
        std::array{peer, range.rowCount, range.count},
        [&](Register reg) { return reg < 0 || get(thread, reg); });
  };
  // All that it can have.
  auto rowsOf = [&](const RangePlan &range, const Bounds &at) {
    return Rows{at.begin, at.end - at.begin, range.stride,
                mostRows(thread, range)};
  };
  SmallVector<RangePlan> read = {action.ranges[0], action.ranges[1]};
  llvm::append_range(read, action.further);
  for (const RangePlan &range : read) {
    steps += 2;
    if (!mayShareMemory(thread, range.memory, product.memory))
      continue;
    auto from = bounds(thread, action, range),
         to = bounds(thread, action, product);
    bool arePlaced = isPlaced(from) && isPlaced(to);
    if (arePlaced && !doMeet(rowsOf(range, *from), rowsOf(product, *to)))
      continue;
    if (!arePlaced || !isKnown(range) || !isKnown(product)) {
      noteUnproven(action.op, "may read elements that it writes itself, where "
                              "data say; give the product memory of its own");
      continue;
    }
    if (auto diag = report(action)) {
      *diag << "reads elements that it writes itself, on " << when(thread)
            << ", of "
            << (product.memory.argument < 0
                    ? std::string("scratch memory")
                    : placeName(product.memory.argument, thread.rank, *to));
      diag->attachNote() << "the threads of a block multiply together: give "
                            "the product other rows or columns, or memory of "
                            "its own";
    }
    return;
  }
}
