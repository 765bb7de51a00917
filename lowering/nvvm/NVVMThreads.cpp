//===- NVVMThreads.cpp - Clusters of CTAs of NVIDIA GPUs ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Ptx.h"
#include "lowering/tiles/ThreadTarget.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using nvvm::Ptx;

namespace {

class NVVMThreads final : public tiles::ThreadTarget {
public:
  StringRef name() const override { return "nvvm"; }
  void addDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  }
  int64_t maxCluster() const override { return 16; }

  Value emitClusterCta(OpBuilder &builder, Location loc) const override {
    return NVVM::ClusterId::create(builder, loc, builder.getI32Type());
  }

  Operation *emitClusterArrive(OpBuilder &builder, Location loc,
                               bool relaxed) const override {
    UnitAttr aligned = builder.getUnitAttr();
    if (relaxed)
      return NVVM::ClusterArriveRelaxedOp::create(builder, loc, aligned);
    return NVVM::ClusterArriveOp::create(builder, loc, aligned);
  }

  void emitClusterWait(OpBuilder &builder, Location loc) const override {
    NVVM::ClusterWaitOp::create(builder, loc, builder.getUnitAttr());
  }

  bool isClusterWait(Operation *op) const override {
    return isa<NVVM::ClusterWaitOp>(op);
  }

  void emitArrivalsFence(ImplicitLocOpBuilder &b) const override {
    nvvm::emit(b, Ptx::FenceArrivals, {});
  }

  void emitExpectBytes(ImplicitLocOpBuilder &b, Value cell, Value bytes,
                       Value condition) const override {
    nvvm::emit(b, Ptx::ExpectBytesIf, {cell, bytes, condition});
  }

  void emitAwaitBytes(ImplicitLocOpBuilder &b, Value cell) const override {
    nvvm::emit(b, Ptx::AwaitBytes, cell);
  }

  void emitStoreToCta(ImplicitLocOpBuilder &b, Value address, Value cta,
                      ValueRange words, Value cell) const override {
    bool wide = words[0].getType().isInteger(64);
    SmallVector<Value> operands = {address, cta};
    llvm::append_range(operands, words);
    if (cell) {
      operands.push_back(cell);
      nvvm::emit(b,
                 words.size() == 4   ? Ptx::StoreAsyncV4
                 : words.size() == 2 ? Ptx::StoreAsyncV2
                 : wide              ? Ptx::StoreAsync64
                                     : Ptx::StoreAsync32,
                 operands);
      return;
    }
    nvvm::emit(b,
               words.size() == 4   ? Ptx::StoreSharedV4
               : words.size() == 2 ? Ptx::StoreSharedV2
               : wide              ? Ptx::StoreShared64
                                   : Ptx::StoreShared32,
               operands);
  }
};

} // namespace

namespace mlir::comms::tiles {
const ThreadTarget &getNVVMThreads() {
  static const NVVMThreads target;
  return target;
}
} // namespace mlir::comms::tiles
