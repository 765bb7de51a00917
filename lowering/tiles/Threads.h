//===- Threads.h - The threads that share a block's tiles -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block may be a cluster of C CTAs with T threads each. Thread u = (index of
// the CTA in the cluster) * T + (index in the CTA) owns elements k * C * T * L
// + u * L + j of a tile, j < L, k = 0, 1, …: one vector of L lanes in each
// *trip* k. L is the same for all tiles of equal length, so that an element has
// one owner in every stage. A thread moves at least 16 bytes, unless a tile of
// wider elements would then leave threads without work.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADS_H
#define COMMSIR_LOWERING_TILES_THREADS_H

#include "dialect/Comms.h"
#include "lowering/tiles/ThreadTarget.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::comms::tiles {

/// Attributes of a kernel whose tiles are distributed over threads: threads per
/// CTA, CTAs per cluster (i64).
inline constexpr const char kThreadsAttr[] = "comms.threads";
inline constexpr const char kClusterAttr[] = "comms.cluster";
/// Maximum number of trips that are unrolled, with values in registers.
inline constexpr int64_t kMaxUnrolledTrips = 16;
/// Threads of a warp.
inline constexpr int64_t kWarp = 32;

/// The threads of one kernel.
class Threads {
public:
  /// `threads` per CTA (a power of two from 32 to 1024), `cluster` CTAs (a
  /// power of two up to 16).
  Threads(KernelOp kernel, int64_t threads, int64_t cluster,
          const ThreadTarget &target);

  const ThreadTarget &getTarget() const { return target; }

  int64_t getThreads() const { return threads; }
  int64_t getCluster() const { return cluster; }
  /// Threads per block.
  int64_t getCount() const { return threads * cluster; }
  int64_t getWarps() const { return getCount() / kWarp; }

  /// Lanes of a vector of tiles of `length` elements.
  int64_t getLanes(int64_t length) const;
  /// Elements per trip.
  int64_t getStride(int64_t length) const {
    return getCount() * getLanes(length);
  }
  /// Trips per tile.
  int64_t getTrips(int64_t length) const;
  bool areUnrolled(int64_t length) const {
    return getTrips(length) <= kMaxUnrolledTrips;
  }

  /// This thread's index in the block, and its lane in the warp.
  Value getNumber();
  Value getLane();
  /// This thread's first element in trip 0 of tiles of `length`.
  Value getFirst(int64_t length);

  /// Barrier of all threads of the block; their writes are visible after it.
  void emitBarrier(OpBuilder &builder, Location loc) const;
  /// Emits `body` on thread 0 only.
  void emitOnFirst(OpBuilder &builder, Location loc,
                   llvm::function_ref<void(OpBuilder &)> body);

  /// Private memory of this thread, and memory shared by the threads of a CTA,
  /// for `length` elements.
  Value makePrivate(Location loc, int64_t length, Type elementType);
  Value makeShared(Location loc, int64_t length, Type elementType);

  /// 0 or 1, alternating between reductions: the half of shared memory that the
  /// reduction at `builder` uses. Null if no reduction is in a loop, in which
  /// case each has its own memory.
  Value takeTurn(OpBuilder &builder, Location loc);
  /// Synchronizes the CTAs of the cluster at the start of the kernel if it
  /// reduces rows, because a CTA must be running before others access its
  /// shared memory. Call this first.
  void awaitCluster(bool countArrivals);
  bool reduces() const { return reductions > 0; }
  /// Offset (i32) in shared memory of the cell that counts the `bytes` bytes of
  /// one row exchange on every CTA, so that no barrier is needed. Null if a row
  /// may be reduced twice, or threads may have left.
  Value takeArrival(OpBuilder &builder, Location loc, int64_t bytes);
  /// Whether exchanges count bytes. Unlike a barrier, they then order only the
  /// exchanged memory.
  bool countsArrivals() const { return arrivals != nullptr; }
  /// Bytes of one value that warps exchange: 4 or 8.
  static int64_t getWordBytes(Type elementType);

private:
  OpBuilder atEntry();
  /// Allocates the cells for all exchanges.
  void makeArrivals();

  KernelOp kernel;
  int64_t threads, cluster;
  const ThreadTarget &target;
  llvm::DenseMap<int64_t, int64_t> lanes;
  llvm::DenseMap<int64_t, Value> firsts;
  Value number, lane, turn;
  /// Number of long rows that are reduced, an upper bound on the number of
  /// cells (i64), and number of cells in use.
  int64_t reductions = 0, taken = 0;
  Value arrivals;
  /// The thread that initializes them, an i32, and the fence after that.
  Value makesArrivals;
  Operation *fence = nullptr;
  /// The last op inserted at the start of the kernel.
  Operation *entry = nullptr;
  bool reducesInLoop = false, mayLeave = false;
};

/// Largest power of two, at most 2^20, that is known to divide an index; used
/// for alignments.
int64_t getDivisor(Value index);

/// Threads that share a line of packets.
inline constexpr int64_t kLineThreads = 8;

/// Whether `op` moves a tile in lines of packets.
bool movesLines(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADS_H
