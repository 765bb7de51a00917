//===- Register.cpp - What a program must register to use CommsIR ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"

#include "dialect/Comms.h"
#include "lowering/Passes.h"
#include "lowering/Pipelines.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

void mlir::comms::registerAllDialects(DialectRegistry &registry) {
  registry.insert<CommsDialect, affine::AffineDialect, arith::ArithDialect,
                  cf::ControlFlowDialect, func::FuncDialect,
                  index::IndexDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect>();
}

void mlir::comms::registerPasses() {
#if __has_include("lowering/ExpandCollectives.cpp")
  registerExpandCollectives();
#endif
#if __has_include("lowering/check/CheckSync.cpp") ||                           \
                  __has_include("lowering/CheckSync.cpp")
  registerCheckSync();
#endif
#if __has_include("lowering/LowerChannels.cpp")
  registerLowerChannels();
#endif
#if __has_include("lowering/EliminateBarriers.cpp")
  registerEliminateBarriers();
#endif
#if __has_include("lowering/Instrument.cpp") ||                                \
                  __has_include("lowering/check/Instrument.cpp")
  registerInstrument();
#endif
#if __has_include("lowering/AssertBounds.cpp") ||                              \
                  __has_include("lowering/check/AssertBounds.cpp")
  registerAssertBounds();
#endif
#if __has_include("lowering/tiles/DistributeTiles.cpp") ||                     \
                  __has_include("lowering/DistributeTiles.cpp")
  registerDistributeTiles();
#endif
#if __has_include("lowering/tiles/PinArithmetic.cpp") ||                       \
                  __has_include(                                               \
                      "lowering/PinArithmetic.cpp") ||                         \
                      __has_include("lowering/cpu/PinArithmetic.cpp")
  registerPinArithmetic();
#endif
#if __has_include("lowering/cpu/ConvertCommsToCPU.cpp") ||                     \
                  __has_include("lowering/ConvertCommsToCPU.cpp")
  registerConvertCommsToCPU();
#endif
#if (__has_include("lowering/ExpandCollectives.cpp")) &&                       \
     (__has_include("lowering/check/CheckSync.cpp") ||                         \
      __has_include("lowering/CheckSync.cpp")) &&                              \
      (__has_include("lowering/LowerChannels.cpp")) &&                         \
       (__has_include("lowering/EliminateBarriers.cpp")) &&                    \
        (__has_include("lowering/Instrument.cpp") ||                           \
         __has_include("lowering/check/Instrument.cpp")) &&                    \
         (__has_include("lowering/AssertBounds.cpp") ||                        \
          __has_include("lowering/check/AssertBounds.cpp")) &&                 \
          (__has_include("lowering/tiles/DistributeTiles.cpp") ||              \
           __has_include("lowering/DistributeTiles.cpp")) &&                   \
           (__has_include("lowering/tiles/PinArithmetic.cpp") ||               \
            __has_include(                                                     \
                "lowering/PinArithmetic.cpp") ||                               \
                __has_include("lowering/cpu/PinArithmetic.cpp")) &&            \
                (__has_include("lowering/cpu/ConvertCommsToCPU.cpp") ||        \
                 __has_include("lowering/ConvertCommsToCPU.cpp"))
  registerPipelines();
#endif
}
