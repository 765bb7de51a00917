//===- ThreadTarget.h - The interface of a target's threads -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On every target, threads have indices, barriers and shuffles of the gpu
// dialect. This interface covers further features: clusters of CTAs that access
// each other's shared memory. See docs/AddATarget.md.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADTARGET_H
#define COMMSIR_LOWERING_TILES_THREADTARGET_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/ErrorHandling.h"

namespace mlir::comms::tiles {

/// A kind of GPU. Cluster functions are called only if `maxCluster` is more
/// than 1.
class ThreadTarget {
public:
  virtual ~ThreadTarget() = default;

  /// Value of the option `target` of comms-distribute-tiles.
  virtual StringRef name() const = 0;
  /// Dialects of the ops that the functions below create.
  virtual void addDialects(DialectRegistry &registry) const = 0;
  /// Maximum CTAs per cluster; 1: clusters are not supported.
  virtual int64_t maxCluster() const { return 1; }

  /// Index of this CTA in its cluster: i32.
  virtual Value emitClusterCta(OpBuilder &builder, Location loc) const {
    llvm_unreachable("the target has no clusters");
  }
  /// A barrier of the cluster in two halves. `relaxed`: does not order memory.
  /// Returns the op that arrives.
  virtual Operation *emitClusterArrive(OpBuilder &builder, Location loc,
                                       bool relaxed) const {
    llvm_unreachable("the target has no clusters");
  }
  virtual void emitClusterWait(OpBuilder &builder, Location loc) const {
    llvm_unreachable("the target has no clusters");
  }
  /// Whether `op` is the second half.
  virtual bool isClusterWait(Operation *op) const { return false; }

  /// Publishes the initialized byte-counting cells, after all
  /// `emitExpectBytes`.
  virtual void emitArrivalsFence(ImplicitLocOpBuilder &b) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Makes the cell at `cell` (i32, in shared memory) expect `bytes` (i32) if
  /// `condition` (i32) is nonzero.
  virtual void emitExpectBytes(ImplicitLocOpBuilder &b, Value cell, Value bytes,
                               Value condition) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Waits until the expected bytes have arrived.
  virtual void emitAwaitBytes(ImplicitLocOpBuilder &b, Value cell) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Stores 1, 2 or 4 words of 32 bits, or one of 64, at `address` (i32) in the
  /// shared memory of CTA `cta` (i32) of the cluster. `cell`: counts the bytes
  /// there; null: a barrier publishes them.
  virtual void emitStoreToCta(ImplicitLocOpBuilder &b, Value address, Value cta,
                              ValueRange words, Value cell) const {
    llvm_unreachable("the target has no clusters");
  }
};

/// All targets of this build, and the one of that name; null: there is none.
ArrayRef<const ThreadTarget *> getThreadTargets();
const ThreadTarget *findThreadTarget(StringRef name);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADTARGET_H
