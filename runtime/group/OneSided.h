//===- OneSided.h - Put, get and signal from the host -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One-sided access to windows: the other rank makes no call. The functions do
// between processes what the ops of the same names do in a kernel;
// docs/Groups.md defines the order.
//
// Signal cells belong to the group. They are numbered from 0 in the order of
// their reservation; each holds a number from 0 to 2^63 - 1.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_ONESIDED_H
#define COMMSIR_RUNTIME_GROUP_ONESIDED_H

#include "runtime/group/Group.h"

namespace commsir::group {

/// `reserve` and `release` need one thread at a time (Group.h). All other
/// functions are thread-safe.
class OneSided {
public:
  explicit OneSided(Group &group) : group(group) {}

  /// Reserves `count` cells on each rank, all 0, and returns the number of the
  /// first. Collective.
  llvm::Expected<int64_t> reserve(int64_t count);
  /// Releases the cells that `reserve` returned. Collective.
  llvm::Error release(int64_t first);

  /// Copies `bytes` bytes to the peer's part of a window. `to` lies in this
  /// rank's part, at the desired offset. CPU: the data has arrived on return.
  /// GPU: the copy is enqueued in `stream`.
  llvm::Error put(int64_t peer, void *to, const void *from, size_t bytes,
                  void *stream);
  /// Copies `bytes` bytes from the peer's part; `from` lies in this rank's
  /// part, at the desired offset.
  llvm::Error get(int64_t peer, const void *from, void *to, size_t bytes,
                  void *stream);

  /// Changes a cell of the peer. Ordered after all puts of this rank (GPU:
  /// after all earlier work in `stream`).
  llvm::Error signal(int64_t peer, int64_t cell, SignalKind kind, int64_t value,
                     void *stream);
  /// Adds `value` to cell `first` + this rank of every other rank, ordered as
  /// `signal`. GPU: in one launch.
  llvm::Error signalOthers(int64_t first, int64_t value, void *stream);
  /// Put, then signal. A rank that waits for the signal is guaranteed to see
  /// the data.
  llvm::Error putSignal(int64_t peer, void *to, const void *from, size_t bytes,
                        int64_t cell, SignalKind kind, int64_t value,
                        void *stream);

  /// Waits for a cell of this rank. Reports name `source` (-1: any rank) as the
  /// missing signaler. `timeout` is in seconds; 0: the group's. GPU: the stream
  /// waits; `timeout` must be 0 and none applies. A failed wait leaves the
  /// group unchanged. Releasing the cell or ending the group in another thread
  /// ends the wait.
  llvm::Error wait(int64_t cell, WaitKind kind, int64_t value, int64_t source,
                   double timeout, void *stream);
  /// Waits until a cell of this rank holds at least `value`, then subtracts
  /// `value`. Pairs with signals of kind `Add`. GPU: the stream waits at most
  /// for the group's timeout. A timeout ends the group and is reported by
  /// `Group::poll`; later work in the stream still runs.
  llvm::Error take(int64_t cell, int64_t value, int64_t source, void *stream);
  /// `take` of cell `first` + r of this rank for every other rank r: what
  /// `signalOthers` pairs with. GPU: in one launch.
  llvm::Error takeFromOthers(int64_t first, int64_t value, void *stream);
  /// Reads a cell of this rank. What precedes the signals that made the value
  /// happens before what follows the read.
  llvm::Expected<int64_t> read(int64_t cell);
  /// Sets a cell of this rank to 0.
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
  /// An address at a peer, with a reference that keeps the window alive.
  struct Place {
    void *there;
    WindowUse use;
  };
  llvm::Expected<Cell> find(int64_t cell) const;
  llvm::Expected<Cell> findRow(int64_t first) const;
  llvm::Error checkPeer(int64_t peer, const char *what) const;
  llvm::Error checkWait(int64_t value, int64_t source) const;
  llvm::Expected<Place> reach(int64_t peer, const void *own, size_t bytes,
                              const void *other, const char *what);

  Group &group;
  mutable std::mutex mutex;
  std::vector<Cells> cells;
  /// Next cell number. Numbers are not reused.
  int64_t next = 0;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_ONESIDED_H
