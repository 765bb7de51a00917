//===- NcclCaller.h - Operations as calls into NCCL -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm. CallNccl.cpp selects the operations that become
// calls, NcclGin.cpp and NcclWindows.cpp select the functions, and
// NcclCaller.cpp builds the calls.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_NCCLCALLER_H
#define COMMSIR_LOWERING_NVVM_NCCLCALLER_H

#include "dialect/Comms.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::comms::nvvm {

/// The operations of one kernel.
class NcclCaller {
public:
  NcclCaller(KernelOp kernel, bool onlyGin)
      : kernel(kernel), onlyGin(onlyGin), builder(kernel.getContext()),
        pointer(LLVM::LLVMPointerType::get(kernel.getContext())),
        types(kernel.getContext()) {}
  LogicalResult run();

private:
  // Selection: CallNccl.cpp.
  LogicalResult collect();
  LogicalResult checkShape();
  LogicalResult lowerOp(Operation *op);
  void recordRequirements();

  // GIN: NcclGin.cpp.
  LogicalResult lower(PutOp op);
  LogicalResult lower(PutSignalOp op);
  LogicalResult lower(SignalOp op);
  LogicalResult lower(GetOp op);
  LogicalResult lower(FlushOp op);
  LogicalResult lowerTransfer(Operation *op, Value source, Value sourceOffset,
                              Value window, Value offset, Value count,
                              Value team, Value peer, llvm::StringRef name,
                              ValueRange more);
  LogicalResult lowerWait(Operation *op, Value cells, Value index, Value least,
                          bool isEqual);
  LogicalResult lowerCell(Operation *op, Value cells, Value index,
                          bool isReset);
  FailureOr<Value> cell(Operation *op, Value cells, Value index);
  Value context(Attribute gin);
  Value contextOf(Value cells);
  Value bytes(Value elements, Type element);

  // Load/store reach: NcclWindows.cpp.
  LogicalResult lower(LocalOp op);
  LogicalResult lower(PeerOp op);
  LogicalResult lower(MultimemOp op);
  LogicalResult lower(BarrierOp op);
  LogicalResult lower(BarrierArriveOp op);
  LogicalResult lower(BarrierWaitOp op);
  LogicalResult lowerPart(Operation *op, Value window, Value team, Value peer);
  LogicalResult lowerBarrier(Operation *op, Value team, BarrierExtent extent,
                             MemoryOrder order, llvm::StringRef suffix);
  void lowerNumber(Operation *op, TeamKind kind, llvm::StringRef what);
  bool isReachTeam(TeamOp team);
  Value view(Value address, MemRefType type);

  // Helpers: NcclCaller.cpp.
  Value extra(const llvm::Twine &name);
  bool isArgument(Value value);
  Value comm();
  Value handle(Value window);
  Value offset(Value window);
  Value toPointer(Value word);
  Value toI64(Value value);
  Value toI32(Value value);
  Value worldRank(Value team, Value peer);
  Value call(llvm::StringRef name, ValueRange operands, Type result = {});
  void byLeader(llvm::function_ref<void()> body, bool fenced = false);
  void replaceToken(Operation *op);

  KernelOp kernel;
  bool onlyGin;
  OpBuilder builder;
  Type pointer;
  LLVMTypeConverter types;
  /// Positioned at the operation being lowered.
  ImplicitLocOpBuilder *b = nullptr;
  /// Signals and counters changed through network adapters, and their context.
  /// NCCL has separate cells for each.
  llvm::MapVector<Value, int64_t> overGin;
  /// Resources that the calls need in the device communicator.
  bool usesLsaBarrier = false, usesRailBarrier = false, usesMultimem = false;
  /// NCCL's team of load/store reach must equal the kernel's.
  bool knowsReach = false;
  int64_t contexts = 0;
  llvm::SmallVector<Operation *> ops;
  llvm::DenseSet<Operation *> waits, parts;
  llvm::StringMap<Value> arguments;
};

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_NCCLCALLER_H
