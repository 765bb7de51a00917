//===- Fiber.h - One block of one rank, and its stack -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fibers are switched by Boost.Context's lowest layer, which never unwinds. To
// end a fiber, it is not resumed again and its stack is reclaimed.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_FIBER_H
#define COMMSIR_RUNTIME_CPU_FIBER_H

#include "lowering/cpu/Abi.h"
#include "runtime/cpu/FiberTag.h"
#include "runtime/cpu/Memory.h"

#include <boost/context/detail/fcontext.hpp>

#include <cstdint>
#include <vector>

namespace commsir::cpu {

struct BarrierState;
struct Worker;
using mlir::comms::cpu::Context;

/// The condition that a block waits for.
struct Wait {
  enum Kind : uint8_t {
    Nothing,
    /// The signal or counter cell at `address` satisfies `compare` with
    /// `value`.
    Cell,
    /// `count` packets at `address` carry the flag `value`.
    Packets,
    /// No element of `count` at `address` is poison.
    Poison,
    /// `barrier` has passed generation `value`.
    Barrier,
    /// All blocks of the rank have ended the previous launch.
    Launch,
    /// Stopped in a loop by a limit.
    Interrupted,
    /// Ended by its own error, described by the fields.
    Failed
  };
  Kind kind = Nothing;
  /// Cell: 0: eq; 1: ge.
  uint8_t compare = 0;
  /// Packets: the flag of a 128-byte line.
  bool inLine = false;
  /// Poison: bytes per element.
  uint8_t elementBytes = 0;
  int32_t site = -1;
  /// Cell: index of the argument, and of the cell.
  int32_t argument = -1;
  int64_t index = 0;
  char *address = nullptr;
  int64_t count = 0;
  int64_t value = 0;
  /// Cell: world rank that should signal; -1: any.
  int64_t from = -1;
  BarrierState *barrier = nullptr;
  /// Packets, Poison: how many had arrived at the last poll.
  int64_t found = 0;
};

/// Kind of error in a block.
struct Failure {
  enum Kind : uint8_t {
    None,
    OutOfBounds,
    Cell,
    Team,
    Barrier,
    TooManyBarriers,
    /// Two accesses that nothing orders; the memory knows which.
    Race,
    /// Barriers that peers share hold impossible values: they count fewer
    /// arrivals than before, or belong to no team.
    BarriersDamaged
  } kind = None;
  int64_t offset = 0, count = 0, limit = 0;
};

struct Fiber {
  enum State : uint8_t { Ready, Running, Waiting, Finished, Dead };

  Context context = {};
  boost::context::detail::fcontext_t suspended = nullptr;
  [[no_unique_address]] FiberTag tag;
  Worker *worker = nullptr;
  /// Index of its stack slot, or -1.
  int64_t slot = -1;
  State state = Ready;
  Wait wait;
  Failure failure;
  /// Next fiber that waits at the same address.
  Fiber *next = nullptr;
  /// Time at which it was last suspended; for traces only.
  int64_t stoppedAt = 0;
};

/// Stacks of one size, each with the scratch memory of the block that runs on
/// it. Slots are reused last in, first out, so that few pages are touched if
/// blocks do not wait.
class StackPool {
public:
  /// `stackBytes` and `arenaBytes` are the requirements of one block.
  static llvm::Expected<StackPool> create(size_t slots, size_t stackBytes,
                                          size_t arenaBytes);

  /// Takes `count` slots from the end, as a list for one worker.
  std::vector<int64_t> take(size_t first, size_t count) const;
  /// One past the highest address of the stack.
  char *top(int64_t slot) const {
    return mapping.data() + slot * stride + guard + stack;
  }
  size_t stackBytes() const { return stack; }
  char *arena(int64_t slot) const { return top(slot); }

private:
  Mapping mapping;
  size_t stride = 0, guard = 0, stack = 0;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_FIBER_H
