//===- KernelLowering.h - One kernel becomes one LLVM function --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/rocdl. A skeleton: it supports windows, plain memory,
// scalars, loads and stores, and barriers of the world, and refuses other ops
// by name.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ROCDL_KERNELLOWERING_H
#define COMMSIR_LOWERING_ROCDL_KERNELLOWERING_H

#include "lowering/target/KernelBase.h"

namespace mlir::comms::rocdl {

class KernelLowering : target::KernelBase {
public:
  KernelLowering(KernelOp kernel, const LLVMTypeConverter &types,
                 StringRef chip);

  /// Makes the function next to the kernel, and erases the kernel. Emits a
  /// diagnostic and fails on unsupported ops.
  LogicalResult run();

private:
  LogicalResult makeFunction();
  void readContext(ImplicitLocOpBuilder &b);
  LogicalResult lowerBody();
  LogicalResult refuse(Operation *op);

  // Loads from the context, and from the arrays of addresses in it.
  Value loadNumber(int64_t offset, ImplicitLocOpBuilder &b);
  Value loadPointer(Value from, Value index, ImplicitLocOpBuilder &b);
  Value threadId(ImplicitLocOpBuilder &b);
  Value isFirstThread(ImplicitLocOpBuilder &b);
  /// The cell of rank `world` for barriers of this extent, or, with `counts`,
  /// this rank's number of barriers so far.
  Value barrierCell(Value world, BarrierExtent extent, bool counts,
                    ImplicitLocOpBuilder &b);

  Value bindMemory(unsigned index, MemRefType type,
                   ImplicitLocOpBuilder &b) override;
  Value bindScalar(unsigned index, Type type, ImplicitLocOpBuilder &b) override;
  void lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) override;
  LogicalResult lowerOtherOp(Operation *op, ImplicitLocOpBuilder &b) override;
  Value partAddress(unsigned argument, Value worldRank,
                    ImplicitLocOpBuilder &b) override;
  Value viewPart(MemRefType type, unsigned argument, Value worldRank,
                 ImplicitLocOpBuilder &b) override;
  void syncThreads(ImplicitLocOpBuilder &b) override;
  FailureOr<Value> arrive(Operation *op, Value team, BarrierExtent extent,
                          ImplicitLocOpBuilder &b) override;
  LogicalResult awaitBarrier(Operation *op, const target::Arrival &arrival,
                             ImplicitLocOpBuilder &b) override;
  void lowerFence(Operation *op, ImplicitLocOpBuilder &b) override;

  // Unsupported in the skeleton.
  LogicalResult lowerScratch(Operation *op, MemRefType,
                             ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  LogicalResult lowerAlloca(memref::AllocaOp op,
                            ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  LogicalResult lowerTransfer(Operation *op, const target::Transfer &,
                              ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  void lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &) override {
    (void)refuse(op);
  }
  void count(Operation *op, unsigned, Value, ImplicitLocOpBuilder &) override {
    (void)refuse(op);
  }
  LogicalResult lowerSignal(Operation *op, Value, Value, SignalKind, Value,
                            Value, Value, bool,
                            ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  LogicalResult lowerWait(Operation *op, Value, Value, WaitKind, Value, Value,
                          Value, ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  LogicalResult lowerCell(Operation *op, Value, Value, bool,
                          ImplicitLocOpBuilder &) override {
    return refuse(op);
  }
  void failBounds(Operation *op, StringRef, Value, Value, Value,
                  ImplicitLocOpBuilder &) override {
    (void)refuse(op);
  }
  LogicalResult lowerTileOp(Operation *op, ImplicitLocOpBuilder &) override {
    return refuse(op);
  }

  std::string chip;
  int64_t threads;
  Value context, parts, barriers;
  /// An op was refused by a function that cannot return failure.
  bool refused = false;
};

} // namespace mlir::comms::rocdl

#endif // COMMSIR_LOWERING_ROCDL_KERNELLOWERING_H
