//===- KernelBase.h - The base of every target's lowering -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On every target a kernel becomes one LLVM function. The target-independent
// part is here: dispatch of ops, constants, sites, teams, element addresses,
// loops over peers, and the attributes that describe arguments. Virtual
// functions implement the target's part. Values of comms types disappear: a
// team becomes three numbers, a window or signal the index of its argument.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_KERNELBASE_H
#define COMMSIR_LOWERING_TARGET_KERNELBASE_H

#include "dialect/Comms.h"
#include "lowering/analysis/TeamNumbers.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::comms::target {

/// Bytes per element in memory: whole bytes, 8 for an index.
int64_t getElementBytes(Type type);

/// Names of a target in errors: "CPU", "a CPU kernel", "comms-to-cpu".
struct TargetNames {
  llvm::StringRef target, kernel, pipeline;
};

/// A copy between this rank's memory and a peer's part of a window.
struct Transfer {
  Value local, localOffset, window, offset, count, team, peer;
  bool toPeer;
};

/// Addresses of a transfer's first elements: on this rank, and at the peer.
struct TransferAddresses {
  Value mine, theirs;
  Type element;
};

/// A block's arrival at a barrier.
struct Arrival {
  Value team;
  BarrierExtent extent = BarrierExtent::Block;
  /// i64: result of `arrive`.
  Value number;
};

/// A kernel being lowered.
class KernelBase {
protected:
  KernelBase(KernelOp kernel, const LLVMTypeConverter &types,
             TargetNames names);
  ~KernelBase() = default;

  // Constants, each emitted once, and sites, the source locations in errors.
  Value constant(IntegerAttr value);
  Value constI64(int64_t value, ImplicitLocOpBuilder &b);
  Value constI32(int64_t value, ImplicitLocOpBuilder &b);
  Value constIndex(int64_t value, ImplicitLocOpBuilder &b);
  Value toI64(Value index, ImplicitLocOpBuilder &b);
  Value siteOf(Operation *op, ImplicitLocOpBuilder &b,
               llvm::StringRef detail = {});
  /// Replaces the token that `op` returns by `number` (i64), or by zero.
  void replaceToken(Operation *op, Value number, ImplicitLocOpBuilder &b);

  // Teams: KernelTeams.cpp.
  FailureOr<TeamNumbers> getTeam(Value team);
  FailureOr<Value> worldRank(Value team, Value rank, ImplicitLocOpBuilder &b);
  /// Same, and ends the kernel if `rank` is not a rank of the team.
  FailureOr<Value> checkedWorldRank(Operation *op, Value team, Value rank,
                                    ImplicitLocOpBuilder &b);

  // Addresses.
  FailureOr<unsigned> getArgument(Operation *op, Value value);
  Value elementAddress(Value memref, Value offset, ImplicitLocOpBuilder &b);
  Value addBytes(Value pointer, Value bytes, ImplicitLocOpBuilder &b);
  Value addBytes(Value pointer, int64_t bytes, ImplicitLocOpBuilder &b);
  Value scale(Value elements, Type elementType, ImplicitLocOpBuilder &b);
  FailureOr<TransferAddresses> findEnds(Operation *op, const Transfer &transfer,
                                        ImplicitLocOpBuilder &b);

  // Dispatches an op; calls the target for target-specific parts.
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerWindowOp(Operation *op, ImplicitLocOpBuilder &b);
  LogicalResult lowerCopyOp(Operation *op, ImplicitLocOpBuilder &b);
  LogicalResult lowerSyncOp(Operation *op, ImplicitLocOpBuilder &b);
  LogicalResult lowerCheckOp(Operation *op, ImplicitLocOpBuilder &b);
  /// Emits the error for an op of this dialect that targets do not support.
  LogicalResult refuseOp(Operation *op);

  // Before and after the ops.
  /// Binds all arguments except the first, which the target has added.
  LogicalResult bindArguments(Block &entry, ImplicitLocOpBuilder &b);
  NamedAttrList describeArgument(unsigned index);
  LogicalResult eraseNames();
  void eraseDead();

  //===--------------------------------------------------------------------===//
  // Target-specific part
  //===--------------------------------------------------------------------===//

  /// Called before argument `index` is bound.
  virtual void beginArgument(unsigned index, ImplicitLocOpBuilder &b) {}
  /// This rank's part of plain memory, and a scalar. Null: the type is not
  /// supported as an argument.
  virtual Value bindMemory(unsigned index, MemRefType type,
                           ImplicitLocOpBuilder &b) = 0;
  virtual Value bindScalar(unsigned index, Type type,
                           ImplicitLocOpBuilder &b) = 0;
  /// The launch's extent as an index; if launches do not specify one, the
  /// maximum.
  virtual Value bindExtent(ExtentOp op, ImplicitLocOpBuilder &b) {
    return constIndex(static_cast<int64_t>(op.getMost()), b);
  }
  virtual void lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) = 0;
  /// Ops of other dialects, which may be left unchanged.
  virtual LogicalResult lowerOtherOp(Operation *op, ImplicitLocOpBuilder &b) {
    return success();
  }

  /// Address of a rank's part of a window, and a memref for it.
  virtual Value partAddress(unsigned argument, Value worldRank,
                            ImplicitLocOpBuilder &b) = 0;
  virtual Value viewPart(MemRefType type, unsigned argument, Value worldRank,
                         ImplicitLocOpBuilder &b) = 0;
  virtual LogicalResult lowerScratch(Operation *op, MemRefType type,
                                     ImplicitLocOpBuilder &b) = 0;
  virtual LogicalResult lowerAlloca(memref::AllocaOp op,
                                    ImplicitLocOpBuilder &b) = 0;

  /// Barrier of the block's threads, if there are several.
  virtual void syncThreads(ImplicitLocOpBuilder &b) {}
  virtual LogicalResult lowerTransfer(Operation *op, const Transfer &transfer,
                                      ImplicitLocOpBuilder &b) = 0;
  virtual void lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &b) = 0;
  /// Adds 1 to a counter cell after the transfer of `op`.
  virtual void count(Operation *op, unsigned counter, Value index,
                     ImplicitLocOpBuilder &b) = 0;

  /// A null value is 1.
  virtual LogicalResult lowerSignal(Operation *op, Value signal, Value index,
                                    SignalKind kind, Value value, Value team,
                                    Value peer, bool release,
                                    ImplicitLocOpBuilder &b) = 0;
  /// `team` and `peer` identify the awaited rank; null: unknown.
  virtual LogicalResult lowerWait(Operation *op, Value cells, Value index,
                                  WaitKind kind, Value value, Value team,
                                  Value peer, ImplicitLocOpBuilder &b) = 0;
  virtual LogicalResult lowerCell(Operation *op, Value cells, Value index,
                                  bool reset, ImplicitLocOpBuilder &b) = 0;
  /// A flush or a fence.
  virtual void lowerFence(Operation *op, ImplicitLocOpBuilder &b) = 0;
  virtual FailureOr<Value> arrive(Operation *op, Value team,
                                  BarrierExtent extent,
                                  ImplicitLocOpBuilder &b) = 0;
  /// `arrival` has no team if the token's barrier is unknown.
  virtual LogicalResult awaitBarrier(Operation *op, const Arrival &arrival,
                                     ImplicitLocOpBuilder &b) = 0;

  /// Ends the kernel with the error that `count` elements from `offset` on
  /// exceed `limit`.
  virtual void failBounds(Operation *op, llvm::StringRef what, Value offset,
                          Value count, Value limit,
                          ImplicitLocOpBuilder &b) = 0;
  /// A record for the race detector.
  virtual void lowerRecord(Operation *op, ImplicitLocOpBuilder &b) {}
  virtual LogicalResult lowerTileOp(Operation *op, ImplicitLocOpBuilder &b) = 0;
  /// A matrix product that comms-distribute-tiles left in place.
  virtual LogicalResult lowerContract(ContractOp op, ImplicitLocOpBuilder &b) {
    return refuseOp(op);
  }

  KernelOp kernel;
  const LLVMTypeConverter &types;
  IRRewriter rewriter;
  LLVM::LLVMFuncOp function;
  /// This rank and block, as index values.
  ThisRank me;
  Value block, blocks, epoch;
  llvm::SmallVector<Type> argTypes;
  /// Arguments of comms types.
  llvm::DenseMap<Value, unsigned> symbolic;
  llvm::SmallVector<Attribute> sites;

private:
  LogicalResult bindArgument(unsigned index, BlockArgument argument,
                             ImplicitLocOpBuilder &b);
  void keepName(BlockArgument argument, unsigned index,
                ImplicitLocOpBuilder &b);
  LogicalResult lowerTeamOp(Operation *op, ImplicitLocOpBuilder &b);
  LogicalResult lowerPeerLoop(ForPeersOp op, ImplicitLocOpBuilder &b);
  void lowerRole(RoleOp op, ImplicitLocOpBuilder &b);
  bool isKnownMember(const TeamNumbers &numbers, Value team, Value rank);

  TeamTable teams;
  TargetNames names;
  /// Arguments that the kernel may write.
  llvm::BitVector written;
  /// Ranks of loops over the peers of a team.
  llvm::DenseMap<Value, Value> peersOf;
  /// Arrivals at barriers, by token.
  llvm::DenseMap<Value, Arrival> arrivals;
  llvm::DenseMap<IntegerAttr, Value> constants;
  llvm::StringMap<int32_t> siteIds;
};

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_KERNELBASE_H
