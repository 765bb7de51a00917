//===- ThreadOrder.h - Where the threads of a block must meet ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's ops follow one another. Its threads need not meet between two ops
// unless one thread touches an element that another has written, or writes one
// that another has read: the elements of tiles of one length at one address
// have one owner each. Packets and poison are waited for, whoever stores them;
// but poison is filled in only after everyone has looked.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADORDER_H
#define COMMSIR_LOWERING_TILES_THREADORDER_H

#include "lowering/tiles/Stage.h"

namespace mlir::comms::tiles {

/// What the threads have touched since they met, along one path.
class ThreadOrder {
public:
  /// Whether the threads must meet before `ops` (with the ops in their regions)
  /// run; remembers what they touch.
  bool needsBarrierBefore(ArrayRef<Operation *> ops);
  /// Whether they must meet in each iteration of `loop`.
  static bool needsBarrierInside(Operation *loop);
  /// All threads have met.
  void meet() { pending.clear(); }
  /// Another path begins where `other`, a copy made before, was.
  void restart(const ThreadOrder &other) { pending = other.pending; }
  /// The threads may come here by the path of `other`, a copy, as well.
  void join(const ThreadOrder &other);

private:
  /// In the order of what is lowered, whichever path that is on: paths that
  /// join may have some of what they have in common.
  struct Pending {
    unsigned number;
    Touch touch;
  };
  SmallVector<Pending> pending;
  unsigned numbers = 0;
};

/// Whether all threads meet at `op`, by what it is lowered to.
bool isMeeting(Operation *op);

/// On comms.poison_fill: nobody reads there in this launch.
inline constexpr const char kStaleAttr[] = "comms.stale";

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADORDER_H
