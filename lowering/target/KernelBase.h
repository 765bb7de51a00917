//===- KernelBase.h - What lowering a kernel shares -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel becomes one LLVM function on every target. What does not depend on
// the target is here: constants, sites, teams, element addresses, loops over
// peers, what the function says of its arguments. Values of comms types
// disappear: a team becomes three numbers, a window or signal the number of the
// argument it is.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_KERNELBASE_H
#define COMMSIR_LOWERING_TARGET_KERNELBASE_H

#include "dialect/Comms.h"
#include "lowering/TeamNumbers.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::comms::target {

/// Bytes of one element in memory: whole bytes, 8 for an index.
int64_t getElementBytes(Type type);

/// One kernel that is being lowered.
class KernelBase {
protected:
  /// `target` names where the kernel runs in errors: "CPU" or "GPU"; `article`
  /// is "a CPU kernel".
  KernelBase(KernelOp kernel, const LLVMTypeConverter &types,
             llvm::StringRef target, llvm::StringRef article)
      : kernel(kernel), types(types), rewriter(kernel.getContext()),
        teams(article), target(target) {}

  // Constants, which stand once, and sites, the places that errors name.
  Value constant(IntegerAttr value);
  Value constI64(int64_t value, ImplicitLocOpBuilder &b);
  Value constI32(int64_t value, ImplicitLocOpBuilder &b);
  Value constIndex(int64_t value, ImplicitLocOpBuilder &b);
  Value toI64(Value index, ImplicitLocOpBuilder &b);
  Value siteOf(Operation *op, ImplicitLocOpBuilder &b,
               llvm::StringRef detail = {});
  /// Replaces the token that `op` gives by `number` (i64), or by zero. The new
  /// token; null: nobody used it.
  Value replaceToken(Operation *op, Value number, ImplicitLocOpBuilder &b);

  // Teams.
  FailureOr<TeamNumbers> getTeam(Value team);
  FailureOr<Value> worldRank(Value team, Value rank, ImplicitLocOpBuilder &b);

  // Addresses.
  FailureOr<unsigned> getArgument(Operation *op, Value value);
  Value elementAddress(Value memref, Value offset, ImplicitLocOpBuilder &b);
  Value addBytes(Value pointer, Value bytes, ImplicitLocOpBuilder &b);
  Value addBytes(Value pointer, int64_t bytes, ImplicitLocOpBuilder &b);
  Value scale(Value elements, Type elementType, ImplicitLocOpBuilder &b);

  // Loops and roles, on rank `rank` and block `block`.
  LogicalResult lowerPeerLoop(ForPeersOp op, Value rank);
  void lowerRole(RoleOp op, Value block);

  // Before and after the ops.
  void keepName(BlockArgument argument, unsigned index,
                ImplicitLocOpBuilder &b);
  NamedAttrList describeArgument(unsigned index);
  LogicalResult eraseNames();
  void eraseDead();

  KernelOp kernel;
  const LLVMTypeConverter &types;
  IRRewriter rewriter;
  LLVM::LLVMFuncOp function;
  llvm::SmallVector<Type> argTypes;
  /// Arguments of comms types.
  llvm::DenseMap<Value, unsigned> symbolic;
  TeamTable teams;
  /// Ranks that a loop over the peers of a team gives.
  llvm::DenseMap<Value, Value> peersOf;
  llvm::SmallVector<Attribute> sites;

private:
  llvm::StringRef target;
  llvm::DenseMap<IntegerAttr, Value> constants;
  llvm::StringMap<int32_t> siteIds;
};

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_KERNELBASE_H
