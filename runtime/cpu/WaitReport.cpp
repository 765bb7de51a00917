//===- WaitReport.cpp - Reports of waiting blocks -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Scheduler.h"

#include <algorithm>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

static std::string number(int64_t value) { return std::to_string(value); }

/// "s[3]": a cell of a signal or counter.
static std::string cellName(const jit::ArgInfo &info, int64_t index) {
  return std::string(info.kind == jit::ArgKind::Counter ? "counter "
                                                        : "signal ") +
         info.name + "[" + number(index) + "]";
}

std::string Scheduler::describeCell(const Fiber &fiber) const {
  const Wait &wait = fiber.wait;
  const jit::ArgInfo &info = kernel.args()[wait.argument];
  int64_t seen = __atomic_load_n(reinterpret_cast<int64_t *>(wait.address),
                                 __ATOMIC_ACQUIRE);
  std::string text = cellName(info, wait.index) + " at rank " +
                     number(fiber.context.rank) + ": observed " + number(seen) +
                     ", expected " + (wait.compare == 0 ? "" : ">= ") +
                     number(wait.value) + "; ";
  if (info.kind == jit::ArgKind::Counter)
    return text + "missing counted puts of this rank";
  if (wait.from < 0)
    return text + "missing signal from a peer";
  return text + "missing signal from rank " + number(wait.from);
}

/// Describes what a rank that others wait for is doing.
std::string Scheduler::describeProgress(int64_t rank, int64_t block) const {
  if (peers)
    return peers->describe(rank);
  const Fiber &fiber = fibers[rank * blocks + block];
  if (fiber.state == Fiber::Finished)
    return " (has ended)";
  if (fiber.state != Fiber::Waiting || fiber.wait.site < 0)
    return "";
  return " (waits at " + kernel.sites()[fiber.wait.site].location + ")";
}

/// A packet or element that has not come: which, where, and who writes there.
std::string Scheduler::describeSlot(const Fiber &fiber) const {
  const Wait &wait = fiber.wait;
  bool packets = wait.kind == Wait::Packets;
  int64_t unit = wait.inLine ? mlir::comms::cpu::kLineBytes
                 : packets   ? 8
                             : wait.elementBytes;
  const char *missing = wait.address + wait.found * (packets ? 8 : unit);
  std::string what = wait.inLine ? "line" : packets ? "packet" : "element";
  std::string end;
  for (size_t i = 0; i < args.size(); ++i) {
    int64_t offset = missing - args[i].base;
    if (!args[i].base || offset < 0 || offset >= args[i].stride * ranks)
      continue;
    const jit::ArgInfo &info = kernel.args()[i];
    int64_t owner = offset / args[i].stride,
            index = offset % args[i].stride / unit;
    what += " " + number(index) + " of " +
            (info.hidden ? "channel memory " : "window ") + info.name +
            " at rank " + number(owner);
    // Channel memory is [buffers][sources][slots][units]: the second index is
    // the sender's rank in the team, where senders have rows of their own.
    if (info.hidden && info.shape.size() >= 2 && info.shape[1] == ranks &&
        ranks > 1) {
      int64_t units = info.elements();
      if (wait.inLine) // Behind the lines lie their rests.
        units = units * 8 /
                (mlir::comms::cpu::kLineBytes + mlir::comms::cpu::kRestBytes);
      int64_t source = index / (units / info.shape[0] / info.shape[1]) % ranks;
      end = "; missing data from rank " + number(source) +
            describeProgress(source, fiber.context.block);
    } else {
      end = "; missing data from the channel's sender";
    }
    break;
  }
  if (!packets)
    return what + ": observed poison, expected data" + end;
  uint64_t packet = __atomic_load_n(reinterpret_cast<const uint64_t *>(missing),
                                    __ATOMIC_ACQUIRE);
  return what + ": observed flag " +
         number(static_cast<int32_t>(packet >> 32)) + ", expected flag " +
         number(static_cast<int32_t>(wait.value)) + end;
}

/// Counts the blocks of a member that have not arrived at the barrier in the
/// generation that `wait` waits for. `first` is one of them, if known.
static int64_t countMissing(const BarrierState &barrier, const Wait &wait,
                            int64_t member, int64_t blocks, int64_t &first) {
  int64_t each = barrier.block < 0 ? blocks : 1, missing = 0;
  first = -1;
  if (barrier.shared.arrived) { // Counts the blocks of a member.
    uint32_t wanted = (uint32_t(wait.value) + 1) * uint32_t(each);
    uint32_t seen = barrier.shared.ofMember[member].load();
    return std::clamp<int64_t>(static_cast<int32_t>(wanted - seen), 0, each);
  }
  for (int64_t block = each - 1; block >= 0; --block) {
    if (barrier.present[member * each + block])
      continue;
    ++missing;
    first = block;
  }
  return missing;
}

/// Names a member that others wait for at a barrier.
std::string Scheduler::describeMissing(const BarrierState &barrier,
                                       int64_t member, int64_t missing,
                                       int64_t first) const {
  int64_t rank = barrier.first + member * barrier.stride;
  std::string text = "rank " + number(rank);
  if (barrier.block >= 0)
    return text + describeProgress(rank, barrier.block);
  if (first < 0)
    return text + describeProgress(rank, 0) +
           (blocks == 1 ? std::string()
                        : " with " + number(missing) + " of its " +
                              number(blocks) + " blocks");
  text += " block " + number(first) + describeProgress(rank, first);
  if (missing > 1)
    text += " and " + number(missing - 1) + " more of its blocks";
  return text;
}

std::string Scheduler::describeBarrier(const Fiber &fiber) const {
  const BarrierState &barrier = *fiber.wait.barrier;
  std::string who;
  int64_t all = 0, named = 0, unnamed = 0;
  for (int64_t member = 0; member < barrier.size; ++member) {
    int64_t first = -1;
    int64_t missing = countMissing(barrier, fiber.wait, member, blocks, first);
    all += missing;
    if (missing && named == 4)
      unnamed += missing;
    else if (missing)
      who += (named++ ? ", " : "; missing ") +
             describeMissing(barrier, member, missing, first);
  }
  if (unnamed)
    who += " and " + number(unnamed) + " more";
  std::string text =
      (barrier.block < 0 ? std::string("barrier of all blocks")
                         : "barrier of block " + number(barrier.block)) +
      " of " + number(barrier.size) + " ranks: ";
  // The last of processes may come while this one gives up.
  if (!all)
    return text + "all " + number(barrier.total) +
           " have arrived since it was given up";
  return text + number(barrier.total - all) + " arrived, expected " +
         number(barrier.total) + who;
}

Waiting Scheduler::describe(const Fiber &fiber) const {
  Waiting waiting{fiber.context.rank, fiber.context.block, "", "", ""};
  const Wait &wait = fiber.wait;
  if (wait.site >= 0 && size_t(wait.site) < kernel.sites().size()) {
    waiting.op = kernel.sites()[wait.site].op;
    waiting.location = kernel.sites()[wait.site].location;
  }
  switch (wait.kind) {
  case Wait::Cell:
    waiting.what = describeCell(fiber);
    break;
  case Wait::Packets:
  case Wait::Poison:
    waiting.what = describeSlot(fiber);
    break;
  case Wait::Barrier:
    waiting.what = describeBarrier(fiber);
    break;
  case Wait::Interrupted:
    waiting.what = "was running this loop when it was stopped";
    break;
  case Wait::Nothing:
    waiting.what = waiting.op.empty() ? "could run"
                                      : "polls, or was stopped after this op";
    break;
  case Wait::Launch:
  case Wait::Failed:
    break;
  }
  return waiting;
}

std::string Scheduler::describeFailure(const Fiber &fiber) const {
  const Failure &failure = fiber.failure;
  const jit::SourceSite site = fiber.wait.site >= 0
                                   ? kernel.sites()[fiber.wait.site]
                                   : jit::SourceSite();
  std::string where = site.location + ": rank " + number(fiber.context.rank) +
                      ", block " + number(fiber.context.block) + ", launch " +
                      number(fiber.context.epoch) + ": ";
  switch (failure.kind) {
  case Failure::OutOfBounds:
    return where + (site.detail.empty() ? site.op : site.detail) + " covers [" +
           number(failure.offset) + ", " + number(failure.offset) + " + " +
           number(failure.count) + "), but the limit is " +
           number(failure.limit);
  case Failure::Cell:
    return where + site.op + " uses cell " + number(failure.offset) + " of '" +
           kernel.args()[failure.count].name + "', which has " +
           number(failure.limit);
  case Failure::Team:
    return where + site.op +
           " is over a team that does not exist: first rank " +
           number(failure.offset) + ", stride " + number(failure.count) + ", " +
           number(failure.limit) + " ranks of " + number(ranks) +
           "; split the team by a divisor of its size";
  case Failure::Barrier:
    return where + site.op +
           " arrives twice at a barrier that is still open; wait for the first "
           "arrival before the "
           "second";
  case Failure::TooManyBarriers:
    return where + site.op +
           " is over one more team than the group keeps barriers for; use "
           "fewer teams in one kernel";
  case Failure::BarriersDamaged:
    return where + site.op + " cannot count the arrivals: " +
           (peers ? peers->others() : std::string("something")) +
           " has overwritten memory that ranks use to wait for each other";
  case Failure::Race:
  case Failure::None:
    break;
  }
  return where + "failed";
}

bool Scheduler::isPeersFault() const {
  return llvm::any_of(fibers, [](const Fiber &fiber) {
    return fiber.failure.kind == Failure::BarriersDamaged;
  });
}

RunError Scheduler::makeError(RunError::Kind kind, std::string message) const {
  RunError error{kind, std::move(message), {}};
  if (kind == RunError::Bounds || kind == RunError::Race ||
      kind == RunError::Other)
    return error;
  for (const Fiber &fiber : fibers) {
    bool waits =
        fiber.state == Fiber::Waiting && fiber.wait.kind != Wait::Launch;
    bool stopped = fiber.wait.kind == Wait::Interrupted;
    // In a deadlock those that poll can still run.
    bool limited = fiber.state == Fiber::Ready && fiber.slot >= 0;
    if (waits || stopped || limited)
      error.waiting.push_back(describe(fiber));
  }
  return error;
}
