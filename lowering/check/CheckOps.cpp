//===- CheckOps.cpp - Only what is checked is compiled --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First in the pipelines, so that no pass sees anything else.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/analysis/UncheckedOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CHECKOPS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;

namespace {
struct CheckOpsPass : comms::impl::CheckOpsBase<CheckOpsPass> {
  void runOnOperation() override {
    if (failed(comms::refuseBesideKernels(getOperation())))
      return signalPassFailure();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      function.erase();
  }
};
} // namespace
