//===- Register.cpp - Registration of dialects and passes -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"

#include "dialect/Comms.h"
#include "lowering/Passes.h"
#include "lowering/Pipelines.h"
#include "lowering/tiles/ThreadTarget.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"

#include <cstdlib>

using namespace mlir;

/// COMMSIR_DEBUG=comms-expand-collectives,…: what LLVM_DEBUG prints of these
/// passes, in builds with assertions. (The distribution's LLVM has no
/// -debug-only.)
static void enableDebugOutput() {
#ifndef NDEBUG
  const char *names = std::getenv("COMMSIR_DEBUG");
  if (!names)
    return;
  SmallVector<StringRef> split;
  StringRef(names).split(split, ',', -1, /*KeepEmpty=*/false);
  SmallVector<std::string> held(split.begin(), split.end());
  SmallVector<const char *> types;
  for (const std::string &name : held)
    types.push_back(name.c_str());
  llvm::DebugFlag = true;
  llvm::setCurrentDebugTypes(types.data(), types.size());
#endif
}

void mlir::comms::registerAllDialects(DialectRegistry &registry) {
  enableDebugOutput();
  registry.insert<CommsDialect, affine::AffineDialect, arith::ArithDialect,
                  cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
                  index::IndexDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect>();
  for (const tiles::ThreadTarget *target : tiles::getThreadTargets())
    target->addDialects(registry);
}

void mlir::comms::registerPasses() {
  registerCommsIRPasses();
  registerPipelines();
}

void mlir::comms::hideLLVMOptions() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (entry.first != "help")
      entry.second->setHiddenFlag(llvm::cl::Hidden);
}
