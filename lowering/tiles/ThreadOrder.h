//===- ThreadOrder.h - Barriers between a block's threads -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Determines where the threads of a block need a barrier between two ops: only
// if one thread accesses an element that another has written, or writes an
// element that another has read. Elements of tiles of equal length at one
// address belong to the same thread. Packets and poison are awaited, whichever
// thread stores them; but poison may be restored only after every thread has
// read the slot.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADORDER_H
#define COMMSIR_LOWERING_TILES_THREADORDER_H

#include "lowering/tiles/Stage.h"

namespace mlir::comms::tiles {

/// Accesses of the threads since the last barrier, along one path.
class ThreadOrder {
public:
  /// Whether a barrier is needed before `ops` (with the ops in their regions)
  /// run. Records their accesses.
  bool needsBarrierBefore(ArrayRef<Operation *> ops);
  /// Whether a barrier is needed in each iteration of `loop`.
  static bool needsBarrierInside(Operation *loop);
  /// Called at a barrier of all threads.
  void meet() { pending.clear(); }
  /// Starts another path at the state `other`, copied before.
  void restart(const ThreadOrder &other) { pending = other.pending; }
  /// Merges the state `other` of another path that leads here.
  void join(const ThreadOrder &other);

private:
  /// In the order of lowering, on any path: paths that join may share entries.
  struct Pending {
    unsigned number;
    Touch touch;
  };
  SmallVector<Pending> pending;
  unsigned numbers = 0;
};

/// Whether `op` is lowered to a barrier of all threads.
bool isMeeting(Operation *op);

/// On comms.poison_fill: no rank reads there in this launch.
inline constexpr const char kStaleAttr[] = "comms.stale";

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADORDER_H
