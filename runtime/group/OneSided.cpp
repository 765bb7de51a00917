//===- OneSided.cpp - Put, get and signal from the host -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/OneSided.h"

#include "runtime/group/Error.h"

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
  int64_t first = next;
  next += count;
  cells.push_back({first, count, static_cast<char *>(*base)});
  return first;
}

llvm::Error OneSided::release(int64_t first) {
  auto it = llvm::find_if(
      cells, [&](const Cells &range) { return range.first == first; });
  if (it == cells.end())
    return makeError(Kind::Usage, "no reserved range of cells begins at " +
                                      llvm::Twine(first));
  if (llvm::Error error = group.release(it->base))
    return error;
  cells.erase(it);
  return llvm::Error::success();
}

llvm::Expected<int64_t *> OneSided::find(int64_t cell) const {
  for (const Cells &range : cells)
    if (cell >= range.first && cell - range.first < range.count)
      return reinterpret_cast<int64_t *>(range.base +
                                         (cell - range.first) * kCellBytes);
  return makeError(Kind::Usage, "cell " + llvm::Twine(cell) +
                                    " is not reserved: all ranks reserve "
                                    "cells of signals together first");
}

/// Where this rank reaches the peer's copy of `own`, which has to lie in a
/// window; `other` is the other side of the copy.
llvm::Expected<void *> OneSided::reach(int64_t peer, const void *own,
                                       size_t bytes, const void *other,
                                       const char *what) {
  int64_t ranks = group.options().ranks;
  if (peer < 0 || peer >= ranks)
    return makeError(Kind::Usage,
                     llvm::Twine(what) + ": rank " + llvm::Twine(peer) +
                         " is none of a group of " + llvm::Twine(ranks));
  if (bytes && (!own || !other))
    return makeError(Kind::Usage,
                     llvm::Twine(what) + ": an address is a null pointer");
  if (!group.isSymmetric(own, bytes))
    return makeError(
        Kind::Bounds,
        llvm::Twine(what) + ": " + llvm::Twine(bytes) + " bytes at " +
            llvm::Twine::utohexstr(reinterpret_cast<uintptr_t>(own)) +
            " do not lie in one window of the group");
  if (llvm::Error error = group.checkPeer(peer))
    return std::move(error);
  void *there = group.peerAddress(own, peer);
  if (!there && bytes)
    return makeError(Kind::Usage, llvm::Twine(what) + ": the window of rank " +
                                      llvm::Twine(peer) +
                                      " is out of this rank's reach");
  return there;
}

llvm::Error OneSided::put(int64_t peer, void *to, const void *from,
                          size_t bytes, void *stream) {
  auto there = reach(peer, to, bytes, from, "put");
  if (!there)
    return there.takeError();
  return bytes ? group.move(*there, from, bytes, stream)
               : llvm::Error::success();
}

llvm::Error OneSided::get(int64_t peer, const void *from, void *to,
                          size_t bytes, void *stream) {
  auto there = reach(peer, from, bytes, to, "get");
  if (!there)
    return there.takeError();
  return bytes ? group.move(to, *there, bytes, stream) : llvm::Error::success();
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
  auto own = find(cell);
  if (!own)
    return own.takeError();
  auto there = reach(peer, *own, sizeof(int64_t), *own, "signal");
  if (!there)
    return there.takeError();
  return group.signalCell({peer, static_cast<int64_t *>(*there), kind, value},
                          stream);
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

llvm::Error OneSided::wait(int64_t cell, WaitKind kind, int64_t value,
                           int64_t source, double timeout, void *stream) {
  if (llvm::Error error = checkValue(value))
    return error;
  auto own = find(cell);
  if (!own)
    return own.takeError();
  int64_t ranks = group.options().ranks;
  if (source < -1 || source >= ranks)
    return makeError(Kind::Usage, "wait: rank " + llvm::Twine(source) +
                                      " is none of a group of " +
                                      llvm::Twine(ranks));
  if (!(timeout >= 0))
    return makeError(Kind::Usage, "wait: the timeout is less than 0 seconds");
  return group.waitCell({*own, cell, kind, value, source, timeout}, stream);
}

llvm::Expected<int64_t> OneSided::read(int64_t cell) {
  auto own = find(cell);
  if (!own)
    return own.takeError();
  return group.readCell(*own);
}

llvm::Error OneSided::reset(int64_t cell, void *stream) {
  return signal(group.options().rank, cell, SignalKind::Set, 0, stream);
}
