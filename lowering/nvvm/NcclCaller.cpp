//===- NcclCaller.cpp - Builds calls into NCCL ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/NcclCaller.h"

#include "lowering/nvvm/Abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// A scalar argument, added when it is first asked for.
Value NcclCaller::extra(const Twine &what) {
  std::string name = what.str();
  Value &known = arguments[name];
  if (known)
    return known;
  auto attributes = builder.getDictionaryAttr(
      {builder.getNamedAttr("comms.name", builder.getStringAttr(name)),
       builder.getNamedAttr(kNcclAttr, builder.getUnitAttr())});
  unsigned index = kernel.getNumArguments();
  if (failed(kernel.insertArgument(index, builder.getI64Type(), attributes,
                                   kernel.getLoc())))
    return {};
  return known = kernel.getBody().getArgument(index);
}

/// Name of an argument of the kernel; empty: it is none.
static std::string nameOf(KernelOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return {};
  return kernel.getArgumentName(argument.getArgNumber());
}

bool NcclCaller::isArgument(Value value) {
  return !nameOf(kernel, value).empty();
}

Value NcclCaller::handle(Value window) {
  return toPointer(extra(kNcclWindow + nameOf(kernel, window)));
}

/// The device communicator.
Value NcclCaller::comm() { return toPointer(extra(kNcclComm)); }

Value NcclCaller::toPointer(Value word) {
  return LLVM::IntToPtrOp::create(*b, pointer, word);
}

/// i64: bytes from the start of NCCL's window to that of the argument, which
/// can be a part of it.
Value NcclCaller::offset(Value window) {
  return extra(kNcclOffset + nameOf(kernel, window));
}

Value NcclCaller::toI64(Value value) {
  if (!value.getType().isIndex())
    return value;
  return b->createOrFold<arith::IndexCastOp>(b->getI64Type(), value);
}

Value NcclCaller::toI32(Value value) {
  return b->createOrFold<arith::TruncIOp>(b->getI32Type(), toI64(value));
}

/// i32.
Value NcclCaller::worldRank(Value team, Value peer) {
  Value world =
      TeamOp::create(*b, TeamType::get(b->getContext()), TeamKind::World);
  return toI32(
      TranslateRankOp::create(*b, b->getIndexType(), peer, team, world));
}

Value NcclCaller::call(StringRef name, ValueRange operands, Type result) {
  std::string symbol = ("commsir_nccl_" + name).str();
  auto module = kernel->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!function) {
    OpBuilder outside(kernel);
    Type type = result ? result : LLVM::LLVMVoidType::get(b->getContext());
    function = LLVM::LLVMFuncOp::create(
        outside, kernel.getLoc(), symbol,
        LLVM::LLVMFunctionType::get(type,
                                    llvm::to_vector(operands.getTypes())));
  }
  auto made = LLVM::CallOp::create(*b, function, operands);
  return result ? made.getResult() : Value();
}

/// Lets one thread make the call, after everything that the other threads did.
void NcclCaller::byLeader(llvm::function_ref<void()> body, bool fenced) {
  if (fenced) // An adapter reads what all threads wrote; it has a barrier.
    FenceOp::create(*b, MemoryOrder::AcqRel, MemoryScope::Sys, Proxy::Generic);
  else
    gpu::BarrierOp::create(*b);
  Value thread = gpu::ThreadIdOp::create(*b, gpu::Dimension::x);
  Value zero = arith::ConstantIndexOp::create(*b, 0);
  Value first =
      arith::CmpIOp::create(*b, arith::CmpIPredicate::eq, thread, zero);
  auto only = scf::IfOp::create(*b, first, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*b);
  b->setInsertionPoint(only.thenYield());
  body();
}

void NcclCaller::replaceToken(Operation *op) {
  if (op->getNumResults() && !op->use_empty()) {
    Value zero = arith::ConstantIntOp::create(*b, 0, 64);
    auto token = UnrealizedConversionCastOp::create(
        *b, TypeRange{op->getResult(0).getType()}, zero);
    op->getResult(0).replaceAllUsesWith(token.getResult(0));
  }
  op->erase();
}
