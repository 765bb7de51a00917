//===- Fiber.h - One block of one rank, and its stack -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fiber is switched by Boost.Context's lowest layer, which never unwinds: a
// fiber that must end is simply not resumed, and its stack is taken back.
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

/// What a block waits for.
struct Wait {
  enum Kind : uint8_t {
    Nothing,
    /// A signal's or counter's cell at `address` compares with `value`.
    Cell,
    /// `count` packets at `address` carry the flag `value`.
    Packets,
    /// No element of `count` at `address` is poison.
    Poison,
    /// `barrier` has passed generation `value`.
    Barrier,
    /// All blocks of the rank have ended the launch before `value`.
    Launch,
    /// Stopped in a loop by a limit.
    Interrupted,
    /// Ended by an error of its own: the fields say which.
    Failed
  };
  Kind kind = Nothing;
  /// Cell: 0 is eq, 1 is ge.
  uint8_t compare = 0;
  /// Packets: the flag of a line of 128 bytes.
  bool inLine = false;
  /// Poison: bytes of an element.
  uint8_t elementBytes = 0;
  int32_t site = -1;
  /// Cell: number of the argument, and of the cell.
  int32_t argument = -1;
  int64_t index = 0;
  char *address = nullptr;
  int64_t count = 0;
  int64_t value = 0;
  /// Cell: world rank that should signal, or -1.
  int64_t from = -1;
  BarrierState *barrier = nullptr;
  /// Packets, Poison: how many were there when last looked at.
  int64_t found = 0;
};

/// What went wrong in a block.
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
    /// What barriers that peers share hold cannot be: they count fewer arrivals
    /// than they did, or are of no team.
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
  /// Number of its stack slot, or -1.
  int64_t slot = -1;
  State state = Ready;
  Wait wait;
  Failure failure;
  /// Next in the list of those that wait at the same place.
  Fiber *next = nullptr;
  /// When it was last taken from the processor; traces only.
  int64_t stoppedAt = 0;
};

/// Stacks of one size, each with the scratch memory of the block that runs on
/// it. Slots are used last in, first out, so that few are touched when blocks
/// do not wait.
class StackPool {
public:
  /// `stackBytes` and `arenaBytes` are what a block needs.
  static llvm::Expected<StackPool> create(size_t slots, size_t stackBytes,
                                          size_t arenaBytes);

  /// Takes `count` slots from the end, as a list to be used by one worker.
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
