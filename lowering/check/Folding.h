//===- Folding.h - Follows blocks that do the same as one -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the blocks of a rank share no cell, slot, barrier or written memory, only
// the ends of launches synchronize them. Then the checker can simulate each
// block together with only the blocks of the same number on other ranks.
//
// The first block represents a class of blocks first, first + 1, … as long as
// each integer of block b equals the first block's plus a slope times (b -
// first), all branches go the same way, and peers, values and lengths are
// equal. Otherwise the class is split in two.
//
// This is sound: renaming the blocks of a class maps one block's events to
// another's. The ends of launches, which join the blocks of a rank, add no new
// order between events of one block. A chain of events that switches blocks
// there can be renamed, link by link, to a chain that stays in one block. (A
// chain between classes may be lost, so the checker does not report errors that
// involve several classes.)
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_FOLDING_H
#define COMMSIR_LOWERING_CHECK_FOLDING_H

#include "lowering/check/Program.h"

#include <optional>

namespace mlir::comms::check {

/// Blocks of each rank that are simulated as one.
struct Lanes {
  int64_t first = 0, count = 0;
};

/// Memory accessed by each class of blocks. Two blocks may access the same
/// memory only if nothing writes it.
class Footprints {
public:
  enum Kind { Cells, Slots, Data, Mail };
  Footprints(const Program &program, int64_t ranks);

  /// The class accesses places [begin, end) of `object` (an argument, or the
  /// slots of a channel) at world rank `rank`. Its other blocks access places
  /// shifted by `slope` per block.
  void add(Kind kind, int64_t object, int64_t rank, int64_t begin, int64_t end,
           int64_t slope, bool writes);
  /// Assigns the added accesses to these blocks. Returns false if two of them
  /// conflict.
  bool close(Lanes lanes);
  /// Drops the accesses added since the last class.
  void drop();
  /// Whether blocks of two classes conflict.
  bool classesOverlap();
  /// Names an object that two blocks access.
  std::string describeConflict() const;

private:
  struct Span {
    int64_t begin = 0, end = 0, slope = 0;
    bool writes = false;
  };
  struct Part {
    /// Accesses of the current class; accesses of all classes, shifted to their
    /// blocks.
    std::vector<Span> present, all;
    /// The class of each entry of `all`.
    std::vector<int32_t> classes;
  };
  bool overlapWithin(std::vector<Span> &spans, int64_t count) const;
  bool overlapBetween(Part &part) const;
  bool keep(Part &part, int64_t count);

  const Program &program;
  int64_t ranks;
  std::vector<Part> parts;
  int32_t numClasses = 0;
  size_t kept = 0, meeting = 0;
};

/// Slopes of the registers of threads that represent a class of blocks.
class Folding {
public:
  Folding(const Program &program, Lanes lanes, size_t threads,
          Footprints &footprints);

  /// Whether blocks of a rank can be simulated separately: no op of the program
  /// joins them.
  static bool isPossible(const Program &program);

  /// Called before an instruction that performs no action, with the thread's
  /// registers. Returns false if the class must be split.
  bool step(const Instruction &in, int32_t thread, const Interval *values);
  /// Called after it. Values that differ between blocks lose their names.
  void unname(const Instruction &in, int32_t thread, Interval *values) const;
  /// Called before an action.
  bool admit(const Action &action, int32_t thread);
  void clear(int32_t thread, Register reg) { slopes[at(thread, reg)] = 0; }

  // Records an access. Returns false if the class must be split.
  bool touchCell(int32_t argument, int64_t rank, int64_t index);
  bool touchSlot(int32_t channel, int64_t source, int64_t slot);
  bool touchMemory(int32_t thread, const RangePlan &range, int64_t rank,
                   int64_t begin, int64_t end, bool writes, bool isExact);
  bool touchPackets(int32_t thread, const Action &action, int64_t rank,
                    int64_t begin, int64_t end);

  /// The first block of the second class.
  int64_t splitsAt() const { return split; }

private:
  size_t at(int32_t thread, Register reg) const {
    return size_t(thread) * program.initialValues.size() + reg;
  }
  int64_t slopeOf(int32_t thread, Register reg) const {
    return reg < 0 ? 0 : slopes[at(thread, reg)];
  }
  /// Splits the class before the block at this distance from its first.
  bool splitBefore(int64_t distance) {
    split = lanes.first + distance;
    return false;
  }
  bool stepSloped(const Instruction &in, int32_t thread, const Interval *v,
                  int64_t a, int64_t b, int64_t c);
  bool stepUnknown(const Instruction &in, int32_t thread, const Interval *v,
                   int64_t a, int64_t b);
  std::optional<int64_t> valueAt(const Instruction &in, const Interval *v,
                                 int64_t a, int64_t b, int64_t distance) const;
  bool staysWithin(int64_t begin, int64_t end, int64_t slope, int64_t limit);

  const Program &program;
  Lanes lanes;
  Footprints &footprints;
  std::vector<int64_t> slopes;
  bool hasLoads = false;
  int64_t split = 0;
  /// Slopes of the current action's cell or slot index, and of its counter's
  /// cell.
  int64_t indexSlope = 0, counterSlope = 0;
  int32_t counter = -1;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_FOLDING_H
