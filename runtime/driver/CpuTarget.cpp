//===- CpuTarget.cpp - The CPU world as a target of comms-run -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Pipelines.h"
#include "lowering/analysis/Blocks.h"
#include "runtime/driver/Target.h"

using namespace commsir;
using namespace commsir::driver;

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
    pipeline.weak = options.weak;
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
    request.weak = options.weak;
    request.object = object;
    // The cost rule of the lowering says the same, where there is no table.
    auto kernelOp = findKernel(*module, name);
    if (kernelOp && (options.explain || tune::getTablesDigest())) {
      tune::ConfigQuery wish;
      wish.ranks = ranks;
      wish.chip = "cpu";
      wish.algorithm = options.algorithm;
      wish.protocol = options.protocol;
      wish.blocks = blocks;
      chooseConfigs(kernelOp, wish, options);
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
    return std::make_unique<InProcessWorld<cpu::World>>(std::move(*world));
  }

private:
  const Options &options;
  std::unique_ptr<jit::Kernel> kernel;
};

} // namespace

namespace commsir::driver {
const TargetKind &getCpuTarget() {
  static const TargetKind kind = {
      "cpu", [](const Options &options) -> std::unique_ptr<Target> {
        return std::make_unique<CpuTarget>(options);
      }};
  return kind;
}
} // namespace commsir::driver
