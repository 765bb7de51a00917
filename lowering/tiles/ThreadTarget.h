//===- ThreadTarget.h - What threads need of a target -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads have numbers, barriers and shuffles of the gpu dialect on every
// target. What a target has beyond that, clusters of CTAs that reach each
// other's shared memory, is behind this interface. docs/AddATarget.md.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADTARGET_H
#define COMMSIR_LOWERING_TILES_THREADTARGET_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/ErrorHandling.h"

namespace mlir::comms::tiles {

/// A kind of GPU. Functions of clusters are called only where `maxCluster` is
/// more than 1.
class ThreadTarget {
public:
  virtual ~ThreadTarget() = default;

  /// As the option `target` of comms-distribute-tiles has it.
  virtual StringRef name() const = 0;
  /// Dialects of the ops that the functions below make.
  virtual void addDialects(DialectRegistry &registry) const = 0;
  /// CTAs of a cluster, at most; 1: the target has none.
  virtual int64_t maxCluster() const { return 1; }

  /// The number of this CTA in its cluster: i32.
  virtual Value emitClusterCta(OpBuilder &builder, Location loc) const {
    llvm_unreachable("the target has no clusters");
  }
  /// A barrier of the cluster in two halves. `relaxed`: it orders no memory.
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

  /// Makes the cells that count bytes ready, after all `emitExpectBytes`.
  virtual void emitArrivalsFence(ImplicitLocOpBuilder &b) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Lets the cell at `cell` (i32, in shared memory) expect `bytes` (i32) where
  /// `condition` (i32) is not 0.
  virtual void emitExpectBytes(ImplicitLocOpBuilder &b, Value cell, Value bytes,
                               Value condition) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Waits until they have come.
  virtual void emitAwaitBytes(ImplicitLocOpBuilder &b, Value cell) const {
    llvm_unreachable("the target counts no arrivals");
  }
  /// Stores 1, 2 or 4 words of 32 bits, or one of 64, at `address` (i32) of the
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
