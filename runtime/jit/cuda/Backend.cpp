//===- Backend.cpp - From a kernel to PTX ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/Backend.h"

#include "lowering/Pipelines.h"
#include "lowering/nvvm/Abi.h"
#include "lowering/nvvm/PtxEmission.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace comms = mlir::comms;

static Error lower(mlir::ModuleOp module, const CudaOptions &options) {
  comms::NVVMPipelineOptions pipeline;
  pipeline.ranks = options.ranks;
  pipeline.blocks = options.blocks;
  // Else the pipeline's own choice.
  if (options.threads)
    pipeline.threads = options.threads;
  if (options.cluster)
    pipeline.cluster = options.cluster;
  pipeline.chip = options.chip;
  pipeline.algorithm = options.algorithm;
  pipeline.protocol = options.protocol;
  pipeline.tileSize = options.tileSize;
  pipeline.check = options.check;
  pipeline.checkEvents = options.checkEvents;
  pipeline.assertBounds = options.assertBounds;
  return runPipeline(module, [&](mlir::OpPassManager &manager) {
    comms::buildCommsToNVVM(manager, pipeline);
  });
}

static LaunchShape readShape(mlir::LLVM::LLVMFuncOp function) {
  LaunchShape shape;
  auto launch =
      function->getAttrOfType<mlir::DictionaryAttr>(comms::nvvm::kLaunchAttr);
  if (!launch)
    return shape;
  auto read = [&](StringRef name, int64_t otherwise) {
    auto number = launch.getAs<mlir::IntegerAttr>(name);
    return number ? number.getInt() : otherwise;
  };
  shape.blocks = read("blocks", 1);
  shape.threads = read("threads", 1);
  shape.cluster = read("cluster", 1);
  shape.dynamicShared = read("dynamic_shared", 0);
  shape.overlap = launch.contains("overlap");
  return shape;
}

/// What kernels that call NCCL's device library take of the host, a launch does
/// not hand over.
static Error refuseNccl(mlir::ModuleOp module, StringRef name) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (function.isExternal() &&
        function.getName().starts_with("commsir_nccl_"))
      return failCompilation(
          CompileError::Stage::Lowering,
          "kernel @" + name + " calls '" + function.getName() +
              "' of NCCL's device library, for which a launch has no device "
              "communicator: drop `gin` for peers in load/store reach, or run "
              "the kernel on the CPU world");
  return Error::success();
}

Expected<PtxKernel> commsir::jit::makePtx(mlir::ModuleOp module, StringRef name,
                                          const CudaOptions &options) {
  if (Error error = lower(module, options))
    return std::move(error);
  if (Error error = refuseNccl(module, name))
    return std::move(error);
  mlir::LLVM::LLVMFuncOp function;
  module.walk([&](mlir::LLVM::LLVMFuncOp candidate) {
    if (candidate.getName() == name &&
        candidate->hasAttr(comms::nvvm::kArgsAttr))
      function = candidate;
  });
  if (!function)
    return failCompilation(CompileError::Stage::Lowering,
                           "the pipeline comms-to-nvvm left no kernel @" +
                               name);
  PtxKernel kernel;
  kernel.entry = name.str();
  kernel.description = describe(function);
  kernel.shape = readShape(function);
  kernel.paramBytes = readNumber(function, comms::nvvm::kParamsAttr);
  comms::PtxOptions emission;
  emission.chip = options.chip;
  emission.optLevel = options.optLevel;
  mlir::FailureOr<std::string> ptx = comms::emitPTX(module, emission);
  if (mlir::failed(ptx))
    return failCompilation(CompileError::Stage::CodeGeneration,
                           "no PTX could be made of kernel @" + name + " for " +
                               options.chip);
  kernel.ptx = std::move(*ptx);
  return kernel;
}
