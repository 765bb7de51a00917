//===- KernelLowering.h - One kernel becomes one LLVM function --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/cpu. Rewrites the comms ops of one kernel as arith, scf
// and LLVM ops; MLIR's conversions handle the rest of the body.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CPU_KERNELLOWERING_H
#define COMMSIR_LOWERING_CPU_KERNELLOWERING_H

#include "dialect/Comms.h"
#include "lowering/cpu/Abi.h"
#include "lowering/target/KernelBase.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::comms::cpu {

/// A vector within a line of packets: addresses of its first and last i64, the
/// line's flag and its rest. `isLast` (i1): it ends the line; the flag then
/// takes the place of its last i64, which moves to the rest.
struct LinePart {
  Value first, last, flag, rest, isLast;
};

class KernelLowering : target::KernelBase {
public:
  KernelLowering(KernelOp kernel, const LLVMTypeConverter &types);

  /// Makes the function next to the kernel, and erases the kernel. Emits a
  /// diagnostic and fails on unsupported ops.
  LogicalResult run();

private:
  // Structure: KernelLowering.cpp.
  LogicalResult makeFunction();
  void readFields(ImplicitLocOpBuilder &b);
  void beginArgument(unsigned index, ImplicitLocOpBuilder &b) override;
  Value bindMemory(unsigned index, MemRefType type,
                   ImplicitLocOpBuilder &b) override;
  Value bindScalar(unsigned index, Type type, ImplicitLocOpBuilder &b) override;
  void addInterrupt(Operation *op);
  void addInterrupt(Operation *op, Block *block, Block::iterator at);
  void lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) override;
  LogicalResult lowerBody();
  void describe();

  // Memory: MemoryLowering.cpp.
  Value partAddress(unsigned argument, Value worldRank,
                    ImplicitLocOpBuilder &b) override;
  Value makeMemRef(MemRefType type, Value address, ImplicitLocOpBuilder &b);
  Value viewPart(MemRefType type, unsigned argument, Value worldRank,
                 ImplicitLocOpBuilder &b) override;
  FailureOr<int64_t> reserveArena(Operation *op, MemRefType type);
  LogicalResult lowerScratch(Operation *op, MemRefType type,
                             ImplicitLocOpBuilder &b) override;
  LogicalResult lowerAlloca(memref::AllocaOp op,
                            ImplicitLocOpBuilder &b) override;
  LogicalResult lowerTransfer(Operation *op, const target::Transfer &transfer,
                              ImplicitLocOpBuilder &b) override;
  void lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &b) override;
  void count(Operation *op, unsigned counter, Value index,
             ImplicitLocOpBuilder &b) override;

  // Synchronization: SyncLowering.cpp.
  LogicalResult lowerSignal(Operation *op, Value signal, Value index,
                            SignalKind kind, Value value, Value team,
                            Value peer, bool release,
                            ImplicitLocOpBuilder &b) override;
  LogicalResult lowerWait(Operation *op, Value cells, Value index,
                          WaitKind kind, Value value, Value team, Value peer,
                          ImplicitLocOpBuilder &b) override;
  LogicalResult lowerCell(Operation *op, Value cells, Value index, bool reset,
                          ImplicitLocOpBuilder &b) override;
  void lowerFence(Operation *op, ImplicitLocOpBuilder &b) override;
  FailureOr<Value> arrive(Operation *op, Value team, BarrierExtent extent,
                          ImplicitLocOpBuilder &b) override;
  LogicalResult awaitBarrier(Operation *op, const target::Arrival &arrival,
                             ImplicitLocOpBuilder &b) override;
  void failBounds(Operation *op, llvm::StringRef what, Value offset,
                  Value count, Value limit, ImplicitLocOpBuilder &b) override;
  void lowerRecord(Operation *op, ImplicitLocOpBuilder &b) override;

  // Tiles, packets, poison, multimem: TileLowering.cpp.
  LogicalResult lowerTileOp(Operation *op, ImplicitLocOpBuilder &b) override;
  Value laneMask(VectorType type, Value count, ImplicitLocOpBuilder &b);
  Value countLanes(Value count, int64_t lanes, ImplicitLocOpBuilder &b);
  Value clearInvalid(Value tile, Value valid, ImplicitLocOpBuilder &b);
  Value loadLanes(VectorType type, Value address, Value count, bool isVolatile,
                  ImplicitLocOpBuilder &b);
  void storeLanes(Value vector, Value address, Value count, bool isVolatile,
                  ImplicitLocOpBuilder &b);
  LogicalResult checkLines(Operation *op, VectorType type);
  LinePart findLine(Value memref, Value offset, int64_t units,
                    ImplicitLocOpBuilder &b);
  LogicalResult lowerLineStore(PacketStoreOp op, VectorType type,
                               ImplicitLocOpBuilder &b);
  LogicalResult lowerLineLoad(PacketLoadOp op, VectorType type,
                              ImplicitLocOpBuilder &b);
  void lowerPacketStore(PacketStoreOp op, VectorType type,
                        ImplicitLocOpBuilder &b);
  void lowerPacketLoad(PacketLoadOp op, VectorType type,
                       ImplicitLocOpBuilder &b);
  void lowerPoisonStore(PoisonStoreOp op, VectorType type,
                        ImplicitLocOpBuilder &b);
  void lowerPoisonLoad(PoisonLoadOp op, VectorType type,
                       ImplicitLocOpBuilder &b);
  Value whenMissing(Value complete, Value first,
                    llvm::function_ref<Value()> wait, ImplicitLocOpBuilder &b);
  LogicalResult lowerMultimem(Operation *op, ImplicitLocOpBuilder &b);
  Value widen(Value tile, ImplicitLocOpBuilder &b);
  Value narrow(Value tile, Type element, ImplicitLocOpBuilder &b);
  Value combine(ReductionKind kind, Value a, Value b2, ImplicitLocOpBuilder &b);

  // Calls.
  Value callRuntime(ImplicitLocOpBuilder &b, llvm::StringRef name,
                    ValueRange operands, Type result = {});
  Value field(Field f) const { return fields[static_cast<int64_t>(f)]; }

  Value context;
  /// The context's fields: index values, except the last four, which are
  /// pointers.
  llvm::SmallVector<Value> fields;
  /// Base (pointer) and stride (i64) of each argument.
  llvm::SmallVector<std::pair<Value, Value>> parts;
  int64_t arenaBytes = 0;
};

} // namespace mlir::comms::cpu

#endif // COMMSIR_LOWERING_CPU_KERNELLOWERING_H
