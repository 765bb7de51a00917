//===- MachineProxies.cpp - Accesses through different proxies ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bulk copies and multicast addresses reach memory through proxies of their
// own. A write through one is seen through another only behind a fence (M11).
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

Proxy Machine::proxyOf(const Action &action, int32_t argument) {
  if (action.kind == ActionKind::BulkCopy)
    return Proxy::Async;
  bool isAlias = llvm::any_of(action.ranges, [&](const RangePlan &range) {
    return range.used && range.memory.kind == MemoryPlan::Multimem &&
           range.memory.argument == argument;
  });
  return isAlias ? Proxy::Alias : Proxy::Generic;
}

void Machine::fenceProxy(Thread &thread, Proxy proxy) {
  if (proxy != Proxy::Alias && proxy != Proxy::Async)
    return;
  ProxyFence made;
  made.path = pathOf(thread);
  made.stamp = clocks.mark(thread.id);
  made.seen = clocks.seen(thread.id).vec();
  made.seenOfAgents = clocks.seenOfAgents(thread.id);
  steps += made.seen.size() / 8;
  if (proxy == Proxy::Async) {
    if (made.path.empty())
      thread.scratchWrites.clear();
    for (ScratchWrite &write : thread.scratchWrites)
      if (write.fencedIn.empty() || !hasRun(thread, write.fencedIn))
        write.fencedIn = made.path;
  }
  (proxy == Proxy::Alias ? aliasFences : asyncFences)
      .push_back(std::move(made));
}

/// A fence of proxy alias stands anywhere on the path, one of proxy async in
/// the block that copies. `perhaps`: one that may have run is enough.
bool Machine::isFenced(const Thread &thread, Proxy proxy, Timestamp write,
                       bool perhaps) const {
  bool isAsync = proxy == Proxy::Async;
  return llvm::any_of(
      isAsync ? asyncFences : aliasFences, [&](const ProxyFence &fence) {
        int32_t agent = fence.stamp.thread;
        bool runs = perhaps || fence.path.empty() ||
                    (agent == thread.id && hasRun(thread, fence.path));
        bool isBehind =
            clocks.isAgent(write.thread) ? fence.seenOfAgents.holds(write)
            : agent == write.thread      ? write.time <= fence.stamp.time
                                    : fence.seen[write.thread] >= write.time;
        return runs && isBehind &&
               (isAsync ? agent == thread.id
                        : clocks.visible(thread.id, fence.stamp));
      });
}

/// M11: what was written through one proxy is accessed through another, in one
/// launch. An error, or not decided if the two need not meet.
void Machine::checkProxy(Thread &thread, int32_t index, int32_t argument,
                         int64_t rank, const Touch &now, const Touch &write,
                         Bounds bounds) {
  bool isAsync = now.proxy == Proxy::Async, isAlias = now.proxy == Proxy::Alias;
  bool isSure =
      !now.isGuess && !now.somewhere && !write.isGuess && !write.somewhere;
  // `bulk_wait` is a fence for what a copy has written.
  if (write.action < 0 || write.launch != now.launch ||
      write.proxy == now.proxy || isMail(program.actions[index].kind) ||
      (isAsync ? now.writes : !isAlias && write.proxy != Proxy::Alias))
    return;
  Proxy wanted = isAsync ? Proxy::Async : Proxy::Alias;
  steps += aliasFences.size() + asyncFences.size();
  if (isFenced(thread, wanted, write.stamp, /*perhaps=*/false))
    return;
  const Action &action = program.actions[index];
  // The same data may decide on the fence and on what needs it.
  bool isLinked = (now.isUnsure || write.isUnsure) &&
                  isFenced(thread, wanted, write.stamp, /*perhaps=*/true);
  if (!isSure || isLinked)
    return noteUnfenced(action, write.action, wanted);
  if (auto diag = report(action)) {
    *diag << (now.writes ? "writes " : "reads ")
          << placeName(argument, rank, bounds) << " on " << when(thread)
          << ", which was written through another proxy, and no comms.fence of "
             "proxy "
          << stringifyProxy(wanted) << (isAsync ? " of this block" : "")
          << " stands between the two";
    diag->attachNote(program.actions[write.action].op->getLoc())
        << "the write, by " << name(write.stamp.thread);
    diag->attachNote() << (isAsync
                               ? "put comms.fence of proxy async before the "
                                 "copy, behind what makes the write visible"
                               : "put comms.fence acq_rel sys proxy alias "
                                 "behind the write or before this access");
  }
}

/// What may have been written through another proxy.
void Machine::noteUnfenced(const Action &action, int32_t write, Proxy wanted) {
  noteUnproven(action.op,
               "may access what was written through another proxy, and no "
               "comms.fence of proxy " +
                   stringifyProxy(wanted) + " stands between the two",
               "the write", program.actions[write].op);
}

/// Scratch memory is a block's own: its order is that of the program.
void Machine::noteScratch(Thread &thread, int32_t index, const RangePlan &range,
                          Bounds bounds) {
  const Action &action = program.actions[index];
  bool isSure = !bounds.anywhere && !bounds.isGuess;
  if (action.kind != ActionKind::BulkCopy) {
    if (range.write)
      thread.scratchWrites.push_back({range.memory.scratch,
                                      index,
                                      bounds,
                                      isSure,
                                      !thread.unsure.empty(),
                                      {}});
    return;
  }
  if (range.write)
    return;
  steps += thread.scratchWrites.size();
  for (const ScratchWrite &write : thread.scratchWrites) {
    if (write.scratch != range.memory.scratch ||
        write.bounds.end <= bounds.begin || bounds.end <= write.bounds.begin ||
        (!write.fencedIn.empty() && hasRun(thread, write.fencedIn)))
      continue;
    bool isLinked =
        !write.fencedIn.empty() && (write.isUnsure || !thread.unsure.empty());
    if (!isSure || !write.isSure || isLinked) {
      noteUnfenced(action, write.action, Proxy::Async);
      continue;
    }
    if (auto diag = report(action)) {
      *diag << "reads scratch memory on " << when(thread)
            << " through the async proxy, which was written without it, and no "
               "comms.fence of proxy async stands between the two";
      diag->attachNote(program.actions[write.action].op->getLoc())
          << "the write";
      diag->attachNote() << "put comms.fence of proxy async before the copy";
    }
    return;
  }
}
