//===- Target.cpp - What a kernel is compiled for and run on --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Target.h"

#include "lowering/Pipelines.h"
#include "runtime/support/Config.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

#ifdef COMMSIR_CUDA
#include "lowering/analysis/Blocks.h"
#include "runtime/cuda/Machine.h"
#include "runtime/cuda/World.h"
#include "runtime/driver/cuda/RanksWorld.h"
#endif

using namespace commsir;
using namespace commsir::driver;

mlir::comms::KernelOp commsir::driver::findKernel(mlir::ModuleOp module,
                                                  llvm::StringRef name) {
  for (auto kernel : module.getOps<mlir::comms::KernelOp>())
    if (kernel.getSymName() == name)
      return kernel;
  return {};
}

tune::KernelAnswer commsir::driver::chooseWays(mlir::comms::KernelOp kernel,
                                               const tune::Question &wish,
                                               const Options &options) {
  tune::KernelAnswer answer = tune::chooseForKernel(kernel, wish);
  if (!options.explain)
    return answer;
  for (const auto &[question, one] : answer.collectives)
    llvm::errs() << tune::explain(question, one);
  if (answer.collectives.empty())
    llvm::errs() << "@" << kernel.getSymName()
                 << " has no collective: there is nothing to choose\n";
  return answer;
}

namespace {

class CpuTarget final : public Target {
public:
  explicit CpuTarget(const Options &options) : options(options) {}

  llvm::Error checkMachine(int64_t) override { return llvm::Error::success(); }
  int64_t defaultBlocks() const override { return mlir::comms::kDefaultBlocks; }

  void addPasses(mlir::OpPassManager &manager, int64_t ranks,
                 int64_t blocks) const override {
    mlir::comms::CommsToCPUOptions pipeline;
    pipeline.ranks = ranks;
    pipeline.blocks = blocks;
    pipeline.algorithm = options.algorithm;
    pipeline.protocol = options.protocol;
    pipeline.check = options.check;
    pipeline.checkEvents = options.checkEvents;
    pipeline.runLaunches = options.launches;
    pipeline.instrument = options.instrument;
    mlir::comms::buildCommsToCPU(manager, pipeline);
  }

  llvm::Error compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                      llvm::StringRef name, int64_t ranks, int64_t blocks,
                      std::string *object) override {
    jit::CompileOptions request;
    request.ranks = ranks;
    // The number is known, so what is proven is what will run.
    request.blocks = blocks;
    request.algorithm = options.algorithm;
    request.protocol = options.protocol;
    request.check = options.check;
    request.checkEvents = options.checkEvents;
    request.runLaunches = options.launches;
    request.instrument = options.instrument;
    request.object = object;
    // The cost rule of the lowering says the same, where there is no table.
    auto kernelOp = findKernel(*module, name);
    if (kernelOp && (options.explain || tune::getTablesDigest())) {
      tune::Question wish;
      wish.ranks = ranks;
      wish.chip = "cpu";
      wish.algorithm = options.algorithm;
      wish.protocol = options.protocol;
      wish.blocks = blocks;
      chooseWays(kernelOp, wish, options);
    }
    auto result = jit::compile(std::move(module), name, request);
    if (!result)
      return result.takeError();
    kernel = std::move(*result);
    return llvm::Error::success();
  }

  llvm::ArrayRef<jit::ArgInfo> args() const override { return kernel->args(); }
  llvm::ArrayRef<jit::Choice> choices() const override {
    return kernel->choices();
  }
  int64_t blocks() const override { return kernel->blocks(); }
  const jit::ProofInfo *proof() const override { return &kernel->proof(); }

  uint64_t hostBytes(int64_t blocks) const override {
    uint64_t bytes =
        blocks * (kernel->frameBytes() + kernel->arenaBytes() + (16 << 10));
    for (const jit::ArgInfo &argument : kernel->args())
      if (argument.hidden)
        bytes += argument.bytes();
    return bytes;
  }

  llvm::Expected<std::unique_ptr<World>>
  createWorld(const cpu::RunOptions &run) override {
    auto world = cpu::World::create(*kernel, run);
    if (!world)
      return world.takeError();
    return std::make_unique<OwnWorld<cpu::World>>(std::move(*world));
  }

private:
  const Options &options;
  std::unique_ptr<jit::Kernel> kernel;
};

} // namespace

unsigned Target::findArg(llvm::StringRef name) const {
  const auto *found = llvm::find_if(
      args(), [&](const jit::ArgInfo &arg) { return arg.name == name; });
  assert(found != args().end() && "compilation keeps the kernel's arguments");
  return unsigned(found - args().begin());
}

llvm::Expected<std::unique_ptr<Target>> Target::create(const Options &options) {
  if (options.target == "cpu")
    return std::make_unique<CpuTarget>(options);
#ifdef COMMSIR_CUDA
  return createCudaTarget(options);
#else
  return llvm::createStringError(
      "this comms-run was built without the GPU target: build it where the "
      "headers of CUDA and NCCL are (make setup brings them)");
#endif
}

bool commsir::driver::mustLeaveAtOnce() {
#ifdef COMMSIR_CUDA
  return cuda::isAnyWorldStuck() || isRankStuck();
#else
  return false;
#endif
}

void commsir::driver::keepMachineOpen() {
#ifdef COMMSIR_CUDA
  cuda::keepDevicesOpen();
#endif
}

bool commsir::driver::mayShareMachine() {
#ifdef COMMSIR_CUDA
  return cuda::mayShareGpus();
#else
  return false;
#endif
}

#ifndef COMMSIR_CUDA
void commsir::driver::allowProcesses() {}
#endif
