//===- Threads.h - The threads that share a block's tiles -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block may be a cluster of C CTAs of T threads each. Thread u = CTA's number
// in the cluster * T + its number in the CTA owns elements
// k * C * T * L + u * L + j of a tile, j < L, k = 0, 1, …: one vector of L
// lanes in each *trip* k. L is the same for all tiles of one length, so that an
// element has one owner in every stage. 16 bytes are the least that a thread
// moves, unless a tile of wider elements has no work for all threads then.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADS_H
#define COMMSIR_LOWERING_TILES_THREADS_H

#include "dialect/Comms.h"
#include "lowering/tiles/ThreadTarget.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::comms::tiles {

/// Attributes of a kernel whose tiles are distributed over threads: threads of
/// a CTA, CTAs of a cluster (i64).
inline constexpr const char kThreadsAttr[] = "comms.threads";
inline constexpr const char kClusterAttr[] = "comms.cluster";
/// Trips up to which they are unrolled, and values stay in registers.
inline constexpr int64_t kMaxUnrolledTrips = 16;
/// Threads of a warp.
inline constexpr int64_t kWarp = 32;

/// The threads of one kernel.
class Threads {
public:
  /// `threads` of a CTA (a power of two from 32 to 1024), `cluster` CTAs (a
  /// power of two up to 16).
  Threads(KernelOp kernel, int64_t threads, int64_t cluster,
          const ThreadTarget &target);

  const ThreadTarget &getTarget() const { return target; }

  int64_t getThreads() const { return threads; }
  int64_t getCluster() const { return cluster; }
  /// Threads of the block.
  int64_t getCount() const { return threads * cluster; }
  int64_t getWarps() const { return getCount() / kWarp; }

  /// Lanes of a vector of tiles of `length` elements.
  int64_t getLanes(int64_t length) const;
  /// Elements of one trip.
  int64_t getStride(int64_t length) const {
    return getCount() * getLanes(length);
  }
  /// Trips of a tile.
  int64_t getTrips(int64_t length) const;
  bool areUnrolled(int64_t length) const {
    return getTrips(length) <= kMaxUnrolledTrips;
  }

  /// This thread's number in the block, and its lane in the warp: index.
  Value getNumber();
  Value getLane();
  /// The first element of this thread in trip 0 of tiles of `length`.
  Value getFirst(int64_t length);

  /// Where all threads of the block meet; what they wrote is seen after it.
  void emitBarrier(OpBuilder &builder, Location loc) const;
  /// `body` on thread 0 alone.
  void emitOnFirst(OpBuilder &builder, Location loc,
                   llvm::function_ref<void(OpBuilder &)> body);

  /// Memory of this thread, and memory that the threads of a CTA share, for
  /// `length` elements.
  Value makePrivate(Location loc, int64_t length, Type elementType);
  Value makeShared(Location loc, int64_t length, Type elementType);

  /// 0 or 1, other than at the last reduction: which half of shared memory the
  /// reduction at `builder` uses. Null where no reduction is in a loop, and
  /// every one has its own memory.
  Value takeTurn(OpBuilder &builder, Location loc);
  /// Makes the CTAs of the cluster meet at the start of the kernel, where any
  /// row is reduced: they must run before others reach their shared memory.
  /// Before everything else.
  void awaitCluster(bool countArrivals);
  bool reduces() const { return reductions > 0; }
  /// The number (i32) of shared memory where `bytes` bytes of one exchange of
  /// rows are counted as they come, on every CTA: there no barrier is needed.
  /// Null where a row may be reduced twice, or threads may have left.
  Value takeArrival(OpBuilder &builder, Location loc, int64_t bytes);
  /// Whether exchanges do so. They order no memory then but what is exchanged,
  /// unlike a barrier.
  bool countsArrivals() const { return arrivals != nullptr; }
  /// Bytes of one value that warps exchange: 4 or 8.
  static int64_t getWordBytes(Type elementType);

private:
  OpBuilder atEntry();
  /// Makes room for the arrivals of all exchanges.
  void makeArrivals();

  KernelOp kernel;
  int64_t threads, cluster;
  const ThreadTarget &target;
  llvm::DenseMap<int64_t, int64_t> lanes;
  llvm::DenseMap<int64_t, Value> firsts;
  Value number, lane, turn;
  /// Long rows that are reduced; cells (i64) of the arrivals of their
  /// exchanges, of which there are no more, and how many are taken.
  int64_t reductions = 0, taken = 0;
  Value arrivals;
  /// The thread that makes them, an i32, and the fence behind them.
  Value makesArrivals;
  Operation *fence = nullptr;
  /// The last op of those put at the start of the kernel.
  Operation *entry = nullptr;
  bool reducesInLoop = false, mayLeave = false;
};

/// The largest power of two, at most 2^20, that certainly divides an index:
/// what tells whether an access is aligned.
int64_t getDivisor(Value index);

/// Threads that share a line of packets.
inline constexpr int64_t kLineThreads = 8;

/// Whether `op` moves a tile in lines of packets.
bool movesLines(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADS_H
