//===- WeakRaces.cpp - Data races of weak memory --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every access is compared with the earlier ones that its block does not know
// of.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

std::optional<WeakMemory::Place>
WeakMemory::findPlace(const char *address) const {
  for (unsigned arg = 0; arg < scheduler.args.size(); ++arg) {
    const auto &[base, stride] = scheduler.args[arg];
    if (base && address >= base && address < base + stride * scheduler.ranks)
      return Place{arg, (address - base) / stride, (address - base) % stride};
  }
  return std::nullopt;
}

/// Whether it is no argument's.
bool WeakMemory::isScratch(const char *address) const {
  return none_of(scheduler.args, [&](const auto &table) {
    return table.base && address >= table.base &&
           address < table.base + table.stride * scheduler.ranks;
  });
}

/// Whether the earlier event happens before the later one, which `agent` makes
/// (M11).
bool WeakMemory::isOrdered(const Agent &agent, const Event &earlier,
                           const Event &later) const {
  // What a block did before, of one proxy.
  if (earlier.thread == agent.thread && earlier.proxy == later.proxy &&
      later.proxy == Proxy::Generic)
    return true;
  auto isIn = [&](const VectorClock &clock) {
    return clock[earlier.thread] >= earlier.time;
  };
  if (earlier.proxy == Proxy::CopyEngine || later.proxy == Proxy::CopyEngine) {
    // Of all blocks of a rank, at once.
    int32_t owner = owners[earlier.thread];
    if (owner != kHost && agents[owner].rank == agent.rank)
      return true;
    return any_of(agents, [&](const Agent &other) {
      return other.rank == agent.rank &&
             other.now.happened[earlier.thread] >= earlier.time;
    });
  }
  if (later.proxy == Proxy::Async && earlier.proxy == Proxy::Generic)
    return isIn(agent.async);
  if (earlier.proxy == Proxy::Async || earlier.proxy == later.proxy)
    return isIn(agent.now.happened);
  return isIn(agent.now.aliased);
}

/// What that thread does happens before what the blocks of the rank do next.
void WeakMemory::advanceRank(int64_t rank, uint32_t thread, uint32_t time) {
  for (Agent &agent : agents)
    if (agent.rank == rank) {
      agent.now.happened.advance(thread, time);
      agent.now.aliased.advance(thread, time);
    }
}

void WeakMemory::check(Fiber &fiber, const Event &event, char *address,
                       int64_t bytes, const Passed &passed) {
  Agent &agent = agentOf(fiber);
  auto begin = reinterpret_cast<intptr_t>(address);
  auto isBefore = [&](const Event &earlier) {
    return isOrdered(agent, earlier, event);
  };
  std::optional<Race> found =
      (isScratch(address) ? agent.scratch : history)
          .add(begin, begin + bytes, event, passed, isBefore);
  // The engine's copy is ordered before all that follows on the rank.
  if (event.proxy == Proxy::CopyEngine)
    advanceRank(agent.rank, event.thread, event.time);
  if (!found)
    return;
  if (!race) {
    Place scratch = {unsigned(scheduler.args.size()), agent.rank,
                     address - fiber.context.arena};
    racePlace = findPlace(address).value_or(scratch);
    race = *found;
    // Within the argument.
    int64_t base = begin - racePlace.offset;
    race->begin -= base;
    race->end -= base;
  }
  if (!scheduler.options.ignoreRaces)
    scheduler.fail(fiber, agent.site, {Failure::Race, 0, 0, 0});
}

/// The host uses its window between two launches of its rank (M23): told by the
/// first block that begins the later one.
void WeakMemory::accessHost(Fiber &fiber, char *address, int64_t bytes) {
  int64_t rank = fiber.context.rank;
  uint32_t thread = hostThreads[rank];
  Event event = {thread,
                 countLaunch(fiber) + 1,
                 countLaunch(fiber),
                 agentOf(fiber).site,
                 true,
                 false,
                 Proxy::Generic};
  // Every window is told once, by the block that comes first.
  auto [teller, isNew] =
      hostTellers.try_emplace({rank, fiber.context.epoch}, fiber.context.block);
  if (!isNew && teller->second != fiber.context.block)
    return;
  check(fiber, event, address, bytes, nullptr);
  advanceRank(rank, thread, event.time);
  for (Agent &agent : agents)
    if (agent.rank == rank)
      agent.async.advance(thread, event.time);
}

std::string WeakMemory::describe(const Event &event) const {
  std::string launch =
      std::to_string(event.launch + scheduler.options.firstLaunch);
  if (owners[event.thread] == kHost)
    return "the host, before launch " + launch +
           " of the rank (the window is marked comms.host)";
  const Agent &agent = agents[owners[event.thread]];
  const jit::SourceSite &site = scheduler.kernel.sites()[event.site];
  std::string what = event.site >= 0 ? ops[event.site].name : "an op";
  std::string text = "rank " + std::to_string(agent.rank) + ", block " +
                     std::to_string(agent.block) + ", launch " + launch + " " +
                     (event.write ? "writes" : "reads") + " (" + what + ", " +
                     site.location + ")";
  if (event.proxy == Proxy::Async)
    text += ", through the async proxy";
  else if (event.proxy == Proxy::Alias)
    text += ", through the alias proxy";
  else if (event.thread != agent.thread)
    text += ", at some time after the op";
  return text;
}

std::string WeakMemory::describeRace() const {
  if (!race)
    return "race";
  std::string where = "scratch memory";
  int64_t bytes = 1;
  if (racePlace.arg < scheduler.kernel.args().size()) {
    const jit::ArgInfo &info = scheduler.kernel.args()[racePlace.arg];
    bytes = std::max(1u, info.elementBytes);
    where = (info.hidden ? "channel memory " : "") + info.name;
  }
  std::string text = "data race on " + where + "[" +
                     std::to_string(race->begin / bytes) + ", " +
                     std::to_string((race->end + bytes - 1) / bytes) +
                     ") of rank " + std::to_string(racePlace.rank) +
                     ": nothing orders these two accesses\n  " +
                     describe(race->first) + "\n  " + describe(race->second);
  bool isProxy = race->first.proxy != race->second.proxy;
  text += isProxy ? "\norder them, and put a fence of that proxy between them "
                    "(Spec, M11)"
                  : "\norder them: by a signal of order release and a wait of "
                    "order acquire, by a barrier, or by a flush before memory "
                    "of a transfer is used again";
  return text + "\nseed " + std::to_string(scheduler.options.seed) +
         " repeats this run";
}
