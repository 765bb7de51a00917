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

llvm::Error OneSided::take(int64_t cell, int64_t value, int64_t source,
                           void *stream) {
  if (llvm::Error error = checkWait(value, source))
    return error;
  auto own = find(cell);
  if (!own)
    return own.takeError();
  CellWait wait{own->own, std::move(own->window), cell};
  wait.value = value;
  wait.source = source;
  wait.takes = true;
  return group.waitCell(wait, stream);
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
    return makeError(Kind::Usage, "another thread has just released cell " +
                                      llvm::Twine(cell));
  return group.readCell(own->own);
}

llvm::Error OneSided::reset(int64_t cell, void *stream) {
  return signal(group.options().rank, cell, SignalKind::Set, 0, stream);
}
