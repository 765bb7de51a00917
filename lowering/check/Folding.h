//===- Folding.h - Follows blocks that do the same as one -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of a rank that have no cell, slot, barrier or written memory in common
// meet at the ends of launches alone. Then each block can be followed with the
// blocks of other ranks that have its number, and nothing else.
//
// Blocks first, first + 1, … are followed as one, by the first of them, while
// each integer of block b is that of the first block plus a slope times
// (b - first), decisions come out alike, and peers, values and lengths are the
// same. Where that fails, the blocks are split into two classes.
//
// Why that is a proof: renaming the blocks of a class turns what one does into
// what another does. The ends of launches, which join the blocks of a rank, add
// no order to the events of one block that it has not by itself: a chain of
// events that changes blocks there can be renamed, link by link, to one that
// stays. (Between classes a chain may be lost, so that errors of several
// classes are not reported.)
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_FOLDING_H
#define COMMSIR_LOWERING_CHECK_FOLDING_H

#include "lowering/check/Program.h"

#include <optional>

namespace mlir::comms::check {

/// Blocks of each rank that are followed as one.
struct Lanes {
  int64_t first = 0, count = 0;
};

/// What blocks touch, by class: nothing but memory that nobody writes may be
/// touched by two of them.
class Footprints {
public:
  enum Kind { Cells, Slots, Data, Mail };
  Footprints(const Program &program, int64_t ranks);

  /// The class touches places [begin, end) of `object` (an argument, or of
  /// slots a channel) at world rank `rank`; its other blocks, as many times
  /// `slope` behind that as they are behind the first.
  void add(Kind kind, int64_t object, int64_t rank, int64_t begin, int64_t end,
           int64_t slope, bool writes);
  /// What was added belongs to these blocks. False: some of them meet.
  bool close(Lanes lanes);
  /// Forgets what was added since the last class.
  void drop();
  /// Whether blocks of two classes meet.
  bool classesOverlap();
  /// Names an object that two blocks touch.
  std::string describeConflict() const;

private:
  struct Span {
    int64_t begin = 0, end = 0, slope = 0;
    bool writes = false;
  };
  struct Part {
    /// Of the present class; and of all, moved to where their blocks are.
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

/// Slopes of the registers of threads that stand for a class of blocks.
class Folding {
public:
  Folding(const Program &program, Lanes lanes, size_t threads,
          Footprints &footprints);

  /// Whether blocks of a rank may be followed apart at all: none of the
  /// program's ops joins them.
  static bool isPossible(const Program &program);

  /// Before an instruction that performs no action, with the thread's
  /// registers. False: the class has to be split.
  bool step(const Instruction &in, int32_t thread, const Interval *values);
  /// Behind it. What differs by block has no name.
  void unname(const Instruction &in, int32_t thread, Interval *values) const;
  /// Before an action.
  bool admit(const Action &action, int32_t thread);
  void clear(int32_t thread, Register reg) { slopes[at(thread, reg)] = 0; }

  // What is touched. False: the class has to be split.
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
  /// The class is split before the block at this distance from its first.
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
  /// Of the present action: of its cell or slot, and of its counter's cell.
  int64_t indexSlope = 0, counterSlope = 0;
  int32_t counter = -1;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_FOLDING_H
