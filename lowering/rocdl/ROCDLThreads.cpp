//===- ROCDLThreads.cpp - Threads of AMD GPUs -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Workgroups have no clusters: what the gpu dialect has is all.
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadTarget.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace mlir::comms;

namespace {

class ROCDLThreads final : public tiles::ThreadTarget {
public:
  StringRef name() const override { return "rocdl"; }
  void addDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, ROCDL::ROCDLDialect>();
  }
};

} // namespace

namespace mlir::comms::tiles {
const ThreadTarget &getROCDLThreads() {
  static const ROCDLThreads target;
  return target;
}
} // namespace mlir::comms::tiles
