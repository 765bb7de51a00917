//===- Pipelines.h - From collectives to a target ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PIPELINES_H
#define COMMSIR_LOWERING_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

namespace mlir::comms {

/// Options of every pipeline from collectives to a target.
struct TargetOptions : virtual mlir::detail::PassOptions {
  Option<int64_t> ranks{
      *this, "ranks", llvm::cl::init(0),
      llvm::cl::desc("Number of ranks; 0: the kernel's own `ranks`")};
  Option<int64_t> blocks;
  Option<std::string> algorithm{
      *this, "algorithm", llvm::cl::init(""),
      llvm::cl::desc("Algorithm for all collectives; empty: each op's own, "
                     "else the cheapest")};
  Option<std::string> protocol{
      *this, "protocol", llvm::cl::init(""),
      llvm::cl::desc("Protocol for all channels; empty: each op's own, else "
                     "the cheapest")};
  Option<int64_t> tileSize;
  Option<bool> check{
      *this, "check", llvm::cl::init(true),
      llvm::cl::desc("Prove that the program neither hangs nor races")};
  Option<int64_t> checkEvents{
      *this, "check-events", llvm::cl::init(0),
      llvm::cl::desc("Budget of events of the proof; 0: a default")};
  Option<int64_t> checkLaunches{
      *this, "check-launches", llvm::cl::init(0),
      llvm::cl::desc("Launches that the proof follows; 0: as many as show "
                     "reuse")};
  Option<int64_t> runLaunches{
      *this, "run-launches", llvm::cl::init(0),
      llvm::cl::desc("Launches that a run will make: so many the proof follows "
                     "if it can, where check-launches is 0")};
  Option<bool> tell{
      *this, "tell", llvm::cl::init(false),
      llvm::cl::desc("Write down with the proof what arrays hold after the "
                     "first launch")};
  Option<bool> assertBounds{
      *this, "assert-bounds", llvm::cl::init(true),
      llvm::cl::desc("Check at run time offsets that cannot be proven")};

  /// Returns an error message for an invalid option value that no pass checks,
  /// or "".
  std::string findMistake() const;

protected:
  /// Help texts of the two options that each target interprets in its own way.
  TargetOptions(llvm::StringRef blocks, llvm::StringRef tileSize)
      : blocks(*this, "blocks", llvm::cl::init(0), llvm::cl::desc(blocks)),
        tileSize(*this, "tile-size", llvm::cl::init(0),
                 llvm::cl::desc(tileSize)) {}
};

/// Options of the pipeline `comms-to-cpu`.
struct CommsToCPUOptions : PassPipelineOptions<CommsToCPUOptions>,
                           TargetOptions {
  CommsToCPUOptions()
      : TargetOptions("Blocks of each rank; 0: the kernel's own `blocks`, else "
                      "known at run time",
                      "Elements of a flat tile; 0: chosen") {}

  Option<bool> instrument{
      *this, "instrument", llvm::cl::init(false),
      llvm::cl::desc("Record accesses for the race detector")};
  Option<bool> weak{*this, "weak", llvm::cl::init(false),
                    llvm::cl::desc("Record what a run with weak memory needs")};
};

/// Adds the passes that lower kernels with collectives, channels or memory
/// operations to LLVM functions for the CPU world. `manager` runs on modules.
void buildCommsToCPU(OpPassManager &manager, const CommsToCPUOptions &options);

/// Adds the passes that expand collectives and lower channels to memory: what
/// ranks do, in ops of this dialect. Nothing is proven.
void buildCommsToMemory(OpPassManager &manager,
                        const CommsToCPUOptions &options);

/// Options of the pipeline `comms-to-nvvm`.
struct NVVMPipelineOptions : PassPipelineOptions<NVVMPipelineOptions>,
                             TargetOptions {
  NVVMPipelineOptions()
      : TargetOptions("Blocks of each rank; 0: the kernel's own `blocks`",
                      "Elements of a flat tile; 0: 16 bytes a thread") {}

  Option<int64_t> threads{
      *this, "threads", llvm::cl::init(128),
      llvm::cl::desc("Threads of a CTA: 1, or a power of two from 32 to 1024")};
  Option<int64_t> cluster{
      *this, "cluster", llvm::cl::init(1),
      llvm::cl::desc("CTAs of a block: a power of two up to 16")};
  Option<bool> countArrivals{
      *this, "count-arrivals", llvm::cl::init(true),
      llvm::cl::desc("Rows over a cluster wait for bytes that an mbarrier "
                     "counts, not for a barrier")};
  Option<bool> sharedChannels{
      *this, "shared-channels", llvm::cl::init(false),
      llvm::cl::desc("Channels lie in memory that the kernels of a group take "
                     "in turn")};
  Option<std::string> chip{*this, "chip", llvm::cl::init("sm_90"),
                           llvm::cl::desc("sm_80, sm_90, sm_100 or later")};
  Option<std::string> impl{
      *this, "impl", llvm::cl::init(""),
      llvm::cl::desc("nccl: windows and barriers are NCCL's own; else they are "
                     "generated, and only GIN calls NCCL")};

  std::string findMistake() const;
};

/// Adds the passes that lower kernels with collectives, channels or memory
/// operations to functions of the LLVM and nvvm dialects for GPUs (see
/// lowering/nvvm/Abi.h). `manager` runs on modules.
void buildCommsToNVVM(OpPassManager &manager,
                      const NVVMPipelineOptions &options);

/// Options of the pipeline `comms-to-rocdl`.
struct ROCDLPipelineOptions : PassPipelineOptions<ROCDLPipelineOptions>,
                              TargetOptions {
  ROCDLPipelineOptions()
      : TargetOptions("Blocks of each rank; 0: the kernel's own `blocks`",
                      "Elements of a flat tile; 0: 16 bytes a thread") {}

  Option<int64_t> threads{
      *this, "threads", llvm::cl::init(64),
      llvm::cl::desc("Threads of a workgroup: a power of two from 32 to 1024")};
  Option<std::string> chip{*this, "chip", llvm::cl::init("gfx942"),
                           llvm::cl::desc("Processor, as LLVM names it")};
};

/// Adds the passes that lower kernels to functions of the LLVM and rocdl
/// dialects for AMD GPUs. A skeleton: nothing runs the result. `manager` runs
/// on modules.
void buildCommsToROCDL(OpPassManager &manager,
                       const ROCDLPipelineOptions &options);

/// Whether the environment requires that kernels be proven:
/// COMMSIR_REQUIRE_PROOF is set to a value other than 0.
bool requiresProof();

/// The three parts of `buildCommsToNVVM`, in this order. The second only
/// records its verdict, and adds nothing if `check` is off and no proof is
/// required; it may run concurrently with the third, on a copy.
void buildCommsToChannels(OpPassManager &manager,
                          const NVVMPipelineOptions &options);
void buildProof(OpPassManager &manager, const TargetOptions &options);
void buildChannelsToNVVM(OpPassManager &manager,
                         const NVVMPipelineOptions &options);

/// Registers the pipelines by name.
void registerPipelines();

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_PIPELINES_H
