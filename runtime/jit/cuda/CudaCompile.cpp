//===- CudaCompile.cpp - From a kernel to PTX -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/CudaCompile.h"
#include "runtime/jit/cuda/DeviceLibrary.h"

#include "lowering/Pipelines.h"
#include "lowering/nvvm/Abi.h"
#include "lowering/nvvm/PtxEmission.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace comms = mlir::comms;

static void describePipeline(const CudaOptions &options,
                             comms::NVVMPipelineOptions &pipeline) {
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
  pipeline.impl = options.impl;
  pipeline.sharedChannels = options.sharedChannels;
  pipeline.tileSize = options.tileSize;
  pipeline.check = options.check;
  pipeline.checkEvents = options.checkEvents;
  pipeline.assertBounds = options.assertBounds;
}

/// Runs one part of the pipeline.
template <typename Build>
static Error lower(mlir::ModuleOp module, const CudaOptions &options,
                   Build build) {
  comms::NVVMPipelineOptions pipeline;
  describePipeline(options, pipeline);
  return runPipeline(
      module, [&](mlir::OpPassManager &manager) { build(manager, pipeline); });
}

/// Tiles of all collectives of a kernel.
static int64_t countTiles(comms::KernelOp kernel) {
  int64_t tiles = 0;
  auto choices =
      kernel->getAttrOfType<mlir::ArrayAttr>(comms::nvvm::kChoicesAttr);
  if (choices)
    for (auto choice : choices.getAsRange<mlir::DictionaryAttr>())
      if (auto number = choice.getAs<mlir::IntegerAttr>("tiles"))
        tiles += number.getInt();
  return tiles;
}

/// Whether the ranks of a kernel on channels deal with so many tiles that the
/// machine code takes longer, too.
static bool hasManyTiles(mlir::ModuleOp module) {
  constexpr int64_t kFew = 4096;
  return any_of(module.getOps<comms::KernelOp>(), [](comms::KernelOp kernel) {
    int64_t ranks = kernel.getRanks().value_or(1);
    return ranks * countTiles(kernel) > kFew;
  });
}

/// Whether the checker follows so many blocks that a copy of the kernel, to
/// judge in parallel with compiling, takes less time.
static bool hasManyBlocks(mlir::ModuleOp module) {
  constexpr uint64_t kFew = 128;
  return any_of(module.getOps<comms::KernelOp>(), [](comms::KernelOp kernel) {
    return kernel.getRanks().value_or(1) * kernel.getBlocks().value_or(1) >
           kFew;
  });
}

static Expected<std::unique_ptr<Proof>> startProof(mlir::ModuleOp module,
                                                   CudaOptions options) {
  return Proof::start(module, [options](mlir::OpPassManager &manager) {
    comms::NVVMPipelineOptions pipeline;
    describePipeline(options, pipeline);
    comms::buildProof(manager, pipeline);
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
  shape.shared = launch.contains("shared");
  return shape;
}

static std::optional<NcclRequirements>
readNeeds(mlir::LLVM::LLVMFuncOp function) {
  auto entry =
      function->getAttrOfType<mlir::DictionaryAttr>(comms::nvvm::kNcclAttr);
  if (!entry)
    return std::nullopt;
  auto read = [&](StringRef name) {
    auto number = entry.getAs<mlir::IntegerAttr>(name);
    return number ? number.getInt() : 0;
  };
  NcclRequirements needs;
  needs.lsaBarriers = read("lsa_barriers");
  needs.railBarriers = read("rail_barriers");
  needs.contexts = read("contexts");
  needs.signals = read("signals");
  needs.counters = read("counters");
  needs.reach = read("reach");
  needs.multimem = entry.contains("multimem");
  return needs;
}

/// The functions of NCCL's device library, for a kernel that calls them.
static Expected<DeviceCode> findFunctions(StringRef name,
                                          const CudaOptions &options) {
  auto fail = [&](const Twine &why) {
    return failCompilation(CompileError::Stage::CodeGeneration,
                           "kernel @" + name +
                               " calls NCCL's device library: " + why);
  };
  if (!options.nccl)
    return fail("NCCL is not available. Leave impl=nccl out and drop `gin` for "
                "peers in load/store reach, or run the kernel on the CPU "
                "world");
  Expected<NcclInstallation> nccl = options.nccl();
  if (!nccl)
    return fail(toString(nccl.takeError()));
  Expected<DeviceCode> code = getDeviceCode(*nccl, DevicePart::Functions,
                                            options.chip, Cache::shared());
  if (!code)
    return fail(toString(code.takeError()));
  return code;
}

/// PTX of a kernel that has been lowered.
static Expected<PtxKernel> emitPtx(mlir::ModuleOp module, StringRef name,
                                   const CudaOptions &options) {
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
  kernel.nccl = readNeeds(function);
  DeviceCode functions;
  if (kernel.nccl) {
    Expected<DeviceCode> found = findFunctions(name, options);
    if (!found)
      return found.takeError();
    functions = std::move(*found);
    if (functions.isBitcode)
      emission.deviceLibrary = functions.code;
    else
      kernel.library = functions.code;
    emission.keepDeviceCalls = !functions.isBitcode;
  }
  mlir::FailureOr<std::string> ptx = comms::emitPTX(module, emission);
  if (mlir::failed(ptx))
    return failCompilation(CompileError::Stage::CodeGeneration,
                           "cannot generate PTX for kernel @" + name + " for " +
                               options.chip);
  kernel.ptx = std::move(*ptx);
  return kernel;
}

/// Generates PTX of a kernel on channels while the checker runs.
static Expected<PtxKernel> makePtxBeside(mlir::ModuleOp module, StringRef name,
                                         const CudaOptions &options) {
  Expected<std::unique_ptr<Proof>> proof = startProof(module, options);
  if (!proof)
    return proof.takeError();
  auto make = [&]() -> Expected<PtxKernel> {
    if (Error error = lower(module, options, comms::buildChannelsToNVVM))
      return std::move(error);
    return emitPtx(module, name, options);
  };
  Expected<PtxKernel> kernel = make();
  if (kernel) {
    kernel->proof = std::move(*proof);
    return kernel;
  }
  // Of a kernel that is refused as well, the refusal is told alone.
  Error refusal = (*proof)->finishProof();
  if (!refusal)
    return kernel;
  consumeError(kernel.takeError());
  return std::move(refusal);
}

Expected<PtxKernel> commsir::jit::makePtx(mlir::ModuleOp module, StringRef name,
                                          const CudaOptions &options) {
  if (Error error = lower(module, options, comms::buildCommsToChannels))
    return std::move(error);
  if ((options.check || comms::requiresProof()) &&
      (hasManyBlocks(module) || hasManyTiles(module)))
    return makePtxBeside(module, name, options);
  auto build = [](mlir::OpPassManager &manager,
                  const comms::NVVMPipelineOptions &pipeline) {
    comms::buildProof(manager, pipeline);
    comms::buildChannelsToNVVM(manager, pipeline);
  };
  if (Error error = lower(module, options, build))
    return std::move(error);
  return emitPtx(module, name, options);
}
