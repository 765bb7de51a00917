//===- Backend.cpp - From a kernel to PTX ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/Backend.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

Expected<PtxKernel> commsir::jit::makePtx(mlir::ModuleOp module, StringRef name,
                                          const CudaOptions &options) {
  return failCompilation(CompileError::Stage::Lowering,
                         "the kernel cannot be lowered for a GPU");
}
