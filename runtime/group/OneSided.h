//===- OneSided.h - Put, get and signal from the host -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Access to windows by one rank alone: the other is in no call. What the ops of
// the same names do in a kernel, between processes; docs/Groups.md says what is
// ordered.
//
// Cells of signals are the group's, numbered from 0 in the order in which they
// are reserved; each holds a number from 0 to 2^63 - 1.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_ONESIDED_H
#define COMMSIR_RUNTIME_GROUP_ONESIDED_H

#include "runtime/group/Group.h"

namespace commsir::group {

/// `reserve` and `release` are for one thread at a time (Group.h), the rest for
/// any.
class OneSided {
public:
  explicit OneSided(Group &group) : group(group) {}

  /// `count` cells on each rank, all 0; the number of the first. Collective.
  llvm::Expected<int64_t> reserve(int64_t count);
  /// Gives back what `reserve` returned. Collective.
  llvm::Error release(int64_t first);

  /// Copies to the peer's part of a window. `to` lies in this rank's part, at
  /// the offset that is meant. CPU: it is there when this returns. GPU: both
  /// copies go into `stream`.
  llvm::Error put(int64_t peer, void *to, const void *from, size_t bytes,
                  void *stream);
  /// Copies from the peer's part; `from` lies in this rank's.
  llvm::Error get(int64_t peer, const void *from, void *to, size_t bytes,
                  void *stream);

  /// Changes a cell of the peer, after all that this rank has put (GPU: that
  /// `stream` has done) before.
  llvm::Error signal(int64_t peer, int64_t cell, SignalKind kind, int64_t value,
                     void *stream);
  /// Put, then signal: who has waited for the signal sees the data.
  llvm::Error putSignal(int64_t peer, void *to, const void *from, size_t bytes,
                        int64_t cell, SignalKind kind, int64_t value,
                        void *stream);

  /// Waits for a cell of this rank; a signal of `source` (-1: of any rank) is
  /// what is missing. `timeout` in seconds; 0: the group's. GPU: the stream
  /// waits, without a timeout, which must be 0. A wait that fails leaves the
  /// group as it was. Another thread that releases the cell, or ends the group,
  /// ends the wait.
  llvm::Error wait(int64_t cell, WaitKind kind, int64_t value, int64_t source,
                   double timeout, void *stream);
  /// Waits until a cell of this rank holds `value` or more, and takes so much
  /// from it: what `wait` would, for whoever signals by `Add`. GPU: the stream
  /// waits, for the group's timeout at most. `Group::poll` tells of a wait in
  /// vain, which ends the group; what is behind it in the stream runs.
  llvm::Error take(int64_t cell, int64_t value, int64_t source, void *stream);
  /// A cell of this rank. What came before the signals that made it comes
  /// before what follows.
  llvm::Expected<int64_t> read(int64_t cell);
  /// Makes a cell of this rank 0.
  llvm::Error reset(int64_t cell, void *stream);

private:
  struct Cells {
    int64_t first, count;
    std::shared_ptr<WindowRecord> window;
  };
  /// A cell of this rank.
  struct Cell {
    int64_t *own;
    std::shared_ptr<WindowRecord> window;
  };
  /// What is at a peer, and what keeps the window meanwhile.
  struct Place {
    void *there;
    WindowUse use;
  };
  llvm::Expected<Cell> find(int64_t cell) const;
  llvm::Error checkPeer(int64_t peer, const char *what) const;
  llvm::Error checkWait(int64_t value, int64_t source) const;
  llvm::Expected<Place> reach(int64_t peer, const void *own, size_t bytes,
                              const void *other, const char *what);

  Group &group;
  mutable std::mutex mutex;
  std::vector<Cells> cells;
  /// Numbers are not used again.
  int64_t next = 0;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_ONESIDED_H
