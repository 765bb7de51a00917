//===- Pipelines.cpp - From collectives to a target -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Pipelines.h"

#include "dialect/Comms.h"
#include "lowering/Cleanup.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/nvvm/PtxEmission.h"

#include "mlir/Pass/PassRegistry.h"

#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>

using namespace mlir;
using namespace mlir::comms;

/// Collectives become channels, in modules that hold kernels alone.
static void addChannelLevel(OpPassManager &manager,
                            const TargetOptions &options, int64_t threads = 0,
                            int64_t cluster = 1) {
  manager.addPass(createCheckOps());
  OpPassManager &kernels = manager.nest<KernelOp>();
  ExpandCollectivesOptions expand;
  expand.ranks = options.ranks;
  expand.blocks = options.blocks;
  expand.algorithm = options.algorithm;
  expand.protocol = options.protocol;
  expand.tileSize = options.tileSize;
  expand.threads = threads;
  expand.cluster = cluster;
  kernels.addPass(createStripFastMath());
  kernels.addPass(createExpandCollectives(expand));
  addCleanup(kernels);
}

bool mlir::comms::requiresProof() {
  const char *value = std::getenv("COMMSIR_REQUIRE_PROOF");
  return value && *value && llvm::StringRef(value) != "0" &&
         llvm::yaml::parseBool(value).value_or(true);
}

/// The program is proven on channels.
static void addProof(OpPassManager &kernels, const TargetOptions &options) {
  bool requireProof = requiresProof();
  if (!options.check && !requireProof)
    return;
  CheckSyncOptions check;
  check.ranks = options.ranks;
  check.blocks = options.blocks;
  check.defaultBlocks = kDefaultBlocks;
  check.maxEvents = options.checkEvents;
  check.launches = options.checkLaunches;
  check.runLaunches = options.runLaunches;
  check.requireProof = requireProof;
  check.tell = options.tell;
  kernels.addPass(createCheckSync(check));
}

/// Channels become memory, and memory is watched where that was asked for.
static void addMemoryLevel(OpPassManager &kernels, const TargetOptions &options,
                           bool instrument = false, bool shared = false,
                           bool weak = false) {
  LowerChannelsOptions lower;
  lower.shared = shared;
  kernels.addPass(createLowerChannels(lower));
  kernels.addPass(createEliminateBarriers());
  addCleanup(kernels);
  if (instrument || weak)
    kernels.addPass(createInstrument(InstrumentOptions{weak}));
  if (options.assertBounds)
    kernels.addPass(createAssertBounds());
}

void mlir::comms::buildCommsToCPU(OpPassManager &manager,
                                  const CommsToCPUOptions &options) {
  addChannelLevel(manager, options);
  OpPassManager &kernels = manager.nest<KernelOp>();
  addProof(kernels, options);
  addMemoryLevel(kernels, options, options.instrument, /*shared=*/false,
                 options.weak);
  kernels.addPass(createDistributeTiles());
  kernels.addPass(createLegalizeNumerics());
  addCleanup(kernels);
  manager.addPass(createConvertCommsToCPU());
}

void mlir::comms::buildCommsToMemory(OpPassManager &manager,
                                     const CommsToCPUOptions &options) {
  addChannelLevel(manager, options);
  OpPassManager &kernels = manager.nest<KernelOp>();
  kernels.addPass(createLowerChannels());
  kernels.addPass(createEliminateBarriers());
  addCleanup(kernels);
}

void mlir::comms::buildCommsToChannels(OpPassManager &manager,
                                       const NVVMPipelineOptions &options) {
  addChannelLevel(manager, options, options.threads, options.cluster);
}

void mlir::comms::buildProof(OpPassManager &manager,
                             const TargetOptions &options) {
  addProof(manager.nest<KernelOp>(), options);
}

void mlir::comms::buildChannelsToNVVM(OpPassManager &manager,
                                      const NVVMPipelineOptions &options) {
  OpPassManager &kernels = manager.nest<KernelOp>();
  addMemoryLevel(kernels, options, /*instrument=*/false,
                 options.sharedChannels);
  kernels.addPass(createUnrollRanks());
  addCleanup(kernels);
  DistributeTilesOptions distribute;
  if (options.threads > 1) {
    distribute.threads = options.threads;
    distribute.cluster = options.cluster;
    distribute.countArrivals = options.countArrivals;
  } else {
    distribute.lanes = 8;
  }
  kernels.addPass(createDistributeTiles(distribute));
  LegalizeNumericsOptions pin;
  pin.chip = options.chip;
  kernels.addPass(createLegalizeNumerics(pin));
  addCleanup(kernels);
  CallNcclOptions nccl;
  nccl.onlyGin = options.impl != "nccl";
  manager.addPass(createCallNccl(nccl));
  ConvertCommsToNVVMOptions convert;
  convert.threads = options.threads;
  convert.cluster = options.cluster;
  convert.chip = options.chip;
  manager.addPass(createConvertCommsToNVVM(convert));
}

void mlir::comms::buildCommsToNVVM(OpPassManager &manager,
                                   const NVVMPipelineOptions &options) {
  buildCommsToChannels(manager, options);
  buildProof(manager, options);
  buildChannelsToNVVM(manager, options);
}

void mlir::comms::buildCommsToROCDL(OpPassManager &manager,
                                    const ROCDLPipelineOptions &options) {
  addChannelLevel(manager, options, options.threads);
  OpPassManager &kernels = manager.nest<KernelOp>();
  addProof(kernels, options);
  addMemoryLevel(kernels, options);
  kernels.addPass(createUnrollRanks());
  addCleanup(kernels);
  DistributeTilesOptions distribute;
  distribute.threads = options.threads;
  distribute.target = "rocdl";
  kernels.addPass(createDistributeTiles(distribute));
  LegalizeNumericsOptions legalize;
  legalize.chip = options.chip;
  kernels.addPass(createLegalizeNumerics(legalize));
  addCleanup(kernels);
  ConvertCommsToROCDLOptions convert;
  convert.chip = options.chip;
  manager.addPass(createConvertCommsToROCDL(convert));
}

std::string TargetOptions::findMistake() const {
  for (const Option<int64_t> *option :
       {&tileSize, &checkEvents, &checkLaunches, &runLaunches})
    if (*option < 0)
      return (option->getArgStr() + "=" + llvm::Twine(int64_t(*option)) +
              ": give a number, or 0 for what is chosen")
          .str();
  return "";
}

std::string NVVMPipelineOptions::findMistake() const {
  if (!impl.empty() && impl != "nccl" && impl != "generated")
    return "impl=" + impl + ": give nccl or generated";
  if (std::string mistake = findChipMistake(chip); !mistake.empty())
    return mistake;
  return TargetOptions::findMistake();
}

/// Registers a pipeline whose options are looked at before its passes are made.
template <typename Options>
static void registerTarget(llvm::StringRef name, llvm::StringRef description,
                           void (*build)(OpPassManager &, const Options &)) {
  auto make =
      [build](OpPassManager &manager, llvm::StringRef text,
              llvm::function_ref<LogicalResult(const llvm::Twine &)> fail)
      -> LogicalResult {
    Options options;
    if (failed(options.parseFromString(text)))
      return failure();
    std::string mistake = options.findMistake();
    if (!mistake.empty())
      return fail(mistake);
    build(manager, options);
    return success();
  };
  auto describe =
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> take) {
        take(Options());
      };
  registerPassPipeline(name, description, make, describe);
}

/// Registers `old`, the name that a pass of kernels had, as an alias.
template <typename... Options>
static void registerAlias(StringRef old, StringRef now,
                          std::unique_ptr<Pass> (*create)(Options...)) {
  PassPipelineRegistration<>(
      old, ("Deprecated name of " + now).str(),
      [=, now = now.str(), old = old.str()](OpPassManager &manager) {
        llvm::errs() << "warning: the pass " << old << " is now called " << now
                     << "; the old name will go away\n";
        bool isNested = manager.getOpName() == KernelOp::getOperationName();
        OpPassManager &kernels = isNested ? manager : manager.nest<KernelOp>();
        kernels.addPass(create(Options()...));
      });
}

void mlir::comms::registerPipelines() {
  registerAlias("comms-drop-licences", "comms-strip-fast-math",
                createStripFastMath);
  registerAlias<>("comms-pin-arithmetic", "comms-legalize-numerics",
                  createLegalizeNumerics);
  registerTarget("comms-to-nvvm", "Lower kernels to functions for NVIDIA GPUs",
                 buildCommsToNVVM);
  registerTarget("comms-to-rocdl",
                 "Lower kernels to functions for AMD GPUs (a skeleton)",
                 buildCommsToROCDL);
  registerTarget("comms-to-cpu",
                 "Lower kernels to LLVM functions that the CPU world runs",
                 buildCommsToCPU);
}
