//===- OneSided.cpp - Put, get and signal from the host -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/OneSided.h"

#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLExtras.h"

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Cells have a line of the caches each: ranks wait for different ones.
static constexpr int64_t kCellBytes = 64;
static constexpr int64_t kMaxCells = int64_t(1) << 20;

llvm::Expected<int64_t> OneSided::reserve(int64_t count) {
  if (count < 1 || count > kMaxCells)
    return makeError(Kind::Usage, "1 to " + llvm::Twine(kMaxCells) +
                                      " cells of signals can be reserved at "
                                      "a time, not " +
                                      llvm::Twine(count));
  auto base = group.allocate(count * kCellBytes);
  if (!base)
    return base.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  int64_t first = next;
  next += count;
  cells.push_back({first, count, group.findWindow(*base, count * kCellBytes)});
  return first;
}

llvm::Error OneSided::release(int64_t first) {
  auto findRange = [&] {
    return llvm::find_if(
        cells, [&](const Cells &range) { return range.first == first; });
  };
  char *base = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = findRange();
    if (it == cells.end())
      return makeError(Kind::Usage, "no reserved range of cells begins at " +
                                        llvm::Twine(first));
    base = it->window->own;
  }
  // Cells can be signaled until all ranks release them.
  if (llvm::Error error = group.release(base))
    return error;
  std::lock_guard<std::mutex> lock(mutex);
  cells.erase(findRange());
  return llvm::Error::success();
}

llvm::Expected<OneSided::Cell> OneSided::find(int64_t cell) const {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Cells &range : cells)
    if (cell >= range.first && cell - range.first < range.count)
      return Cell{reinterpret_cast<int64_t *>(
                      range.window->own + (cell - range.first) * kCellBytes),
                  range.window};
  if (cell >= 0 && cell < next)
    return makeError(Kind::Usage, "cell " + llvm::Twine(cell) +
                                      " was released: make a new window, or "
                                      "reserve new cells, on all ranks");
  return makeError(Kind::Usage, "cell " + llvm::Twine(cell) +
                                    " is not reserved: all ranks reserve "
                                    "cells of signals together first");
}

llvm::Error OneSided::checkPeer(int64_t peer, const char *what) const {
  int64_t ranks = group.options().ranks;
  if (peer >= 0 && peer < ranks)
    return llvm::Error::success();
  return makeError(Kind::Usage,
                   llvm::Twine(what) + ": rank " + llvm::Twine(peer) +
                       " is not in a group of " + llvm::Twine(ranks));
}

/// Returns the address of the peer's copy of `own`, which must lie in a window.
/// `other` is the other side of the copy.
llvm::Expected<OneSided::Place> OneSided::reach(int64_t peer, const void *own,
                                                size_t bytes, const void *other,
                                                const char *what) {
  if (llvm::Error error = checkPeer(peer, what))
    return std::move(error);
  if (bytes && (!own || !other))
    return makeError(Kind::Usage,
                     llvm::Twine(what) + ": an address is a null pointer");
  auto refuse = [&](Kind kind, const char *why) {
    return makeError(
        kind, llvm::Twine(what) + ": " + llvm::Twine(bytes) + " bytes at " +
                  llvm::Twine::utohexstr(reinterpret_cast<uintptr_t>(own)) +
                  why);
  };
  auto window = group.findWindow(own, bytes);
  if (!window)
    return refuse(Kind::Bounds, " do not lie in one window of the group");
  if (llvm::Error error = group.checkPeer(peer))
    return std::move(error);
  Place place{window->reach(own, peer), WindowUse(window)};
  if (!place.use)
    return refuse(Kind::Usage,
                  " lie in a window that another thread has just released");
  if (!place.there && bytes)
    return makeError(Kind::Usage, llvm::Twine(what) + ": the window of rank " +
                                      llvm::Twine(peer) +
                                      " is out of this rank's reach");
  return std::move(place);
}

llvm::Error OneSided::put(int64_t peer, void *to, const void *from,
                          size_t bytes, void *stream) {
  auto there = reach(peer, to, bytes, from, "put");
  if (!there)
    return there.takeError();
  return bytes ? group.move(there->there, from, bytes, stream)
               : llvm::Error::success();
}

llvm::Error OneSided::get(int64_t peer, const void *from, void *to,
                          size_t bytes, void *stream) {
  auto there = reach(peer, from, bytes, to, "get");
  if (!there)
    return there.takeError();
  return bytes ? group.move(to, there->there, bytes, stream)
               : llvm::Error::success();
}

static llvm::Error checkValue(int64_t value) {
  if (value >= 0)
    return llvm::Error::success();
  return makeError(Kind::Usage, "cells of signals hold numbers from 0 to "
                                "2^63 - 1, not " +
                                    llvm::Twine(value));
}

llvm::Error OneSided::signal(int64_t peer, int64_t cell, SignalKind kind,
                             int64_t value, void *stream) {
  if (llvm::Error error = checkValue(value))
    return error;
  auto found = find(cell);
  if (!found)
    return found.takeError();
  int64_t *own = found->own;
  auto place = reach(peer, own, sizeof(int64_t), own, "signal");
  if (!place)
    return place.takeError();
  auto *there = static_cast<int64_t *>(place->there);
  return group.signalCell({peer, there, kind, value}, stream);
}

/// The cell that lies `count` cells behind `own`.
static int64_t *cellBehind(int64_t *own, int64_t count) {
  return own + count * int64_t(kCellBytes / sizeof(*own));
}

static llvm::Error releasedCell(int64_t first) {
  return makeError(Kind::Usage, "another thread has just released cell " +
                                    llvm::Twine(first));
}

/// Returns the first of a row of cells, one a rank, which must have been
/// reserved together.
llvm::Expected<OneSided::Cell> OneSided::findRow(int64_t first) const {
  auto found = find(first);
  if (!found)
    return found.takeError();
  auto last = find(first + group.options().ranks - 1);
  if (!last)
    return last.takeError();
  if (last->window == found->window)
    return std::move(*found);
  return makeError(Kind::Usage, "the cells from " + llvm::Twine(first) +
                                    " on, one a rank, were not reserved "
                                    "together");
}

llvm::Error OneSided::signalOthers(int64_t first, int64_t value, void *stream) {
  if (llvm::Error error = checkValue(value))
    return error;
  auto row = findRow(first);
  if (!row)
    return row.takeError();
  int64_t self = group.options().rank, *own = cellBehind(row->own, self);
  // One use of the window: a thread that locked it twice could wait for one
  // that releases it.
  WindowUse use(row->window);
  if (!use)
    return releasedCell(first);
  std::vector<CellSignal> signals;
  for (int64_t peer = 0; peer < group.options().ranks; ++peer) {
    if (peer == self)
      continue;
    if (llvm::Error error = group.checkPeer(peer))
      return error;
    auto *there = static_cast<int64_t *>(row->window->reach(own, peer));
    if (!there)
      return makeError(Kind::Usage, "signal: the cells of rank " +
                                        llvm::Twine(peer) +
                                        " are out of this rank's reach");
    signals.push_back({peer, there, SignalKind::Add, value});
  }
  return group.signalCells(signals, stream);
}

llvm::Error OneSided::putSignal(int64_t peer, void *to, const void *from,
                                size_t bytes, int64_t cell, SignalKind kind,
                                int64_t value, void *stream) {
  // What is wrong with the signal is said before anything is written.
  if (llvm::Error error = checkValue(value))
    return error;
  if (auto own = find(cell); !own)
    return own.takeError();
  if (llvm::Error error = put(peer, to, from, bytes, stream))
    return error;
  return signal(peer, cell, kind, value, stream);
}

llvm::Error OneSided::checkWait(int64_t value, int64_t source) const {
  if (llvm::Error error = checkValue(value))
    return error;
  int64_t ranks = group.options().ranks;
  if (source >= -1 && source < ranks)
    return llvm::Error::success();
  return makeError(Kind::Usage, "wait: rank " + llvm::Twine(source) +
                                    " is not in a group of " +
                                    llvm::Twine(ranks));
}

/// A wait that takes `value` from a cell which `source` signals.
static CellWait takeOf(int64_t *own, std::shared_ptr<WindowRecord> window,
                       int64_t cell, int64_t value, int64_t source) {
  CellWait wait{own, std::move(window), cell};
  wait.value = value;
  wait.source = source;
  wait.takes = true;
  return wait;
}

llvm::Error OneSided::take(int64_t cell, int64_t value, int64_t source,
                           void *stream) {
  if (llvm::Error error = checkWait(value, source))
    return error;
  auto found = find(cell);
  if (!found)
    return found.takeError();
  return group.waitCell(
      takeOf(found->own, std::move(found->window), cell, value, source),
      stream);
}

llvm::Error OneSided::takeFromOthers(int64_t first, int64_t value,
                                     void *stream) {
  if (llvm::Error error = checkValue(value))
    return error;
  auto row = findRow(first);
  if (!row)
    return row.takeError();
  std::vector<CellWait> waits;
  for (int64_t rank = 0; rank < group.options().ranks; ++rank)
    if (rank != group.options().rank)
      waits.push_back(takeOf(cellBehind(row->own, rank), row->window,
                             first + rank, value, rank));
  return group.waitCells(waits, stream);
}

llvm::Error OneSided::wait(int64_t cell, WaitKind kind, int64_t value,
                           int64_t source, double timeout, void *stream) {
  if (llvm::Error error = checkWait(value, source))
    return error;
  auto own = find(cell);
  if (!own)
    return own.takeError();
  if (!(timeout >= 0))
    return makeError(Kind::Usage, "wait: the timeout is less than 0 seconds");
  return group.waitCell(
      {own->own, std::move(own->window), cell, kind, value, source, timeout},
      stream);
}

llvm::Expected<int64_t> OneSided::read(int64_t cell) {
  auto own = find(cell);
  if (!own)
    return own.takeError();
  WindowUse use(own->window);
  if (!use)
    return releasedCell(cell);
  return group.readCell(own->own);
}

llvm::Error OneSided::reset(int64_t cell, void *stream) {
  return signal(group.options().rank, cell, SignalKind::Set, 0, stream);
}
