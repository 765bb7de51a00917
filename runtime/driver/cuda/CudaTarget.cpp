//===- CudaTarget.cpp - NVIDIA GPUs as a target of comms-run --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Pipelines.h"
#include "runtime/choose/ChannelMemory.h"
#include "runtime/choose/cuda/Fitting.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/RankDevices.h"
#include "runtime/cuda/World.h"
#include "runtime/driver/Target.h"
#include "runtime/driver/cuda/Examine.h"
#include "runtime/driver/cuda/RankProcess.h"
#include "runtime/driver/cuda/RanksWorld.h"
#include "runtime/jit/cuda/CudaKernel.h"

#include "mlir/Bytecode/BytecodeWriter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::driver;

/// Default timeout of waits, in seconds.
static constexpr double kTimeout = 10;

/// Fills in name and size of a GPU. Where the driver does not say, the chip
/// alone is known.
static void describeDevice(int ordinal, tune::ConfigQuery &query) {
  auto driver = cuda::Driver::get();
  if (!driver) {
    llvm::consumeError(driver.takeError());
    return;
  }
  CUdevice device = 0;
  char name[128] = "";
  int count = 0;
  if ((*driver)->DeviceGet(&device, ordinal) != CUDA_SUCCESS)
    return;
  if ((*driver)->DeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS)
    query.device = name;
  if ((*driver)->DeviceGetAttribute(&count,
                                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                    device) == CUDA_SUCCESS)
    query.multiprocessors = count;
}

namespace {

/// This is comms-run.
bool processesAllowed = false;

class CudaTarget final : public Target {
public:
  explicit CudaTarget(const Options &options) : options(options) {}

  llvm::Expected<std::optional<int64_t>> findJobRanks() override {
    if (options.rendezvous.empty())
      return std::nullopt;
    auto found = JobRank::find();
    if (!found)
      return found.takeError();
    place = *found;
    return place->ranks;
  }
  llvm::Error checkMachine(int64_t ranks) override {
    std::vector<int> devices = options.devices;
    if (place)
      devices = {ownDevice()};
    // What the groups of ranks allow.
    auto limit = tune::getChannelLimit();
    if (!limit)
      return limit.takeError();
    channelLimit = *limit;
    auto found =
        cuda::checkMachine(place ? 1 : ranks, devices, ranksAreProcesses());
    if (!found)
      return found.takeError();
    chip = *found;
    return llvm::Error::success();
  }
  int64_t defaultBlocks() const override { return 16; }

  void addPasses(mlir::OpPassManager &, int64_t, int64_t) const override {}

  llvm::Error compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                      llvm::StringRef name, int64_t ranks, int64_t blocks,
                      std::string *object) override {
    jit::CudaOptions request;
    request.ranks = ranks;
    request.blocks = blocks;
    request.threads = options.threads;
    request.cluster = options.cluster;
    request.chip = chip;
    request.algorithm = options.algorithm;
    request.protocol = options.protocol;
    request.impl = options.impl;
    request.nccl = cuda::findNccl;
    tune::ConfigQuery machine;
    bool isOpen = false;
    if (auto kernelOp = findKernel(*module, name)) {
      machine = fillIn(request, kernelOp);
      isOpen = !options.blocks && !kernelOp.getBlocks();
    }
    request.check = options.check;
    request.checkEvents = options.checkEvents;
    if (ranksAreProcesses())
      if (auto error = describeTask(*module, name, request))
        return error;
    auto result =
        tune::compileFitting(std::move(module), name, request, machine, isOpen);
    if (!result)
      return result.takeError();
    kernel = std::move(*result);
    task.request.blocks = request.blocks;
    if (object)
      object->assign(kernel->code().begin(), kernel->code().end());
    return llvm::Error::success();
  }

  llvm::ArrayRef<jit::ArgInfo> args() const override { return kernel->args(); }
  llvm::ArrayRef<jit::Choice> choices() const override {
    return kernel->choices();
  }
  const jit::ProofInfo *proof() const override { return &kernel->proof(); }
  int64_t blocks() const override { return kernel->shape().blocks; }
  uint64_t hostBytes(int64_t) const override { return 0; }

  llvm::Expected<std::unique_ptr<World>>
  createWorld(const cpu::RunOptions &run) override {
    if (ranksAreProcesses())
      return createRanksWorld(run);
    cuda::RunOptions request;
    request.launches = run.launches;
    request.firstLaunch = run.firstLaunch;
    request.timeLimit = run.timeLimit;
    request.timeout = options.timeout.value_or(kTimeout);
    request.graph = options.graph;
    request.devices.assign(options.devices.begin(), options.devices.end());
    request.windows = options.windows == "nccl"    ? cuda::WindowKind::Nccl
                      : options.windows == "plain" ? cuda::WindowKind::Plain
                                                   : cuda::WindowKind::Auto;
    auto world = cuda::World::create(*kernel, request);
    if (!world)
      return world.takeError();
    windows = (*world)->getWindowsNote().str();
    return std::make_unique<InProcessWorld<cuda::World>>(std::move(*world));
  }

  void ran(const World &world) override {
    if (ranksAreProcesses())
      windows = static_cast<const RanksWorld &>(world).getWindowsNote();
  }

  std::string note() const override {
    jit::LaunchShape shape = kernel->shape();
    std::string text;
    llvm::raw_string_ostream(text)
        << kernel->chip() << ": blocks of " << shape.cluster << " x "
        << shape.threads << " threads, " << kernel->registers()
        << " registers a thread; windows by " << windows;
    return text;
  }

private:
  bool ranksAreProcesses() const {
    return place || (processesAllowed && !options.oneProcess);
  }
  int ownDevice() const {
    return cuda::getDeviceOf(place->local, options.devices);
  }

  /// Records the task of the ranks, once the kernel's options are known.
  llvm::Error describeTask(mlir::ModuleOp module, llvm::StringRef name,
                           const jit::CudaOptions &settled) {
    llvm::raw_string_ostream out(task.request.source);
    mlir::BytecodeWriterConfig config("CommsIR");
    if (mlir::failed(mlir::writeBytecodeToFile(module, out, config)))
      return llvm::createStringError("the kernel cannot be written");
    task.request.name = name.str();
    task.request.algorithm = settled.algorithm;
    task.request.protocol = settled.protocol;
    task.request.blocks = settled.blocks;
    task.request.threads = settled.threads;
    task.request.cluster = settled.cluster;
    task.request.impl = settled.impl;
    task.request.check = settled.check;
    task.request.checkEvents = settled.checkEvents;
    task.group.name = "comms-run";
    task.group.ranks = settled.ranks;
    task.group.timeout = options.timeout.value_or(kTimeout);
    task.group.windows = options.windows == "auto" ? "" : options.windows;
    task.graph = options.graph;
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<World>>
  createRanksWorld(const cpu::RunOptions &run) {
    task.launches = run.launches;
    task.request.firstLaunch = uint64_t(run.firstLaunch);
    task.timeLimit = run.timeLimit;
    if (!place)
      return createProcessWorld(task, *kernel, options.devices);
    task.group.rank = place->rank;
    task.group.device = ownDevice();
    task.rendezvous = options.rendezvous;
    return createOneRankWorld(task, *kernel, *place);
  }

  /// Chooses the options that neither the user nor the kernel sets. Returns the
  /// facts about the machine.
  tune::ConfigQuery fillIn(jit::CudaOptions &request,
                           mlir::comms::KernelOp kernel) const {
    tune::ConfigQuery wish;
    wish.memory = channelLimit;
    wish.ranks = request.ranks;
    wish.chip = chip;
    describeDevice(options.devices.empty() ? 0 : options.devices.front(), wish);
    wish.algorithm = options.algorithm;
    wish.protocol = options.protocol;
    wish.blocks = options.blocks;
    wish.threads = options.threads;
    // NCCL's barriers are of one CTA.
    wish.cluster = options.impl.empty() ? options.cluster : 1;
    tune::KernelConfigs answer = chooseConfigs(kernel, wish, options);
    if (answer.blocks && !options.blocks && !kernel.getBlocks())
      request.blocks = answer.blocks;
    if (!request.threads)
      request.threads = answer.threads;
    if (!request.cluster)
      request.cluster = answer.cluster;
    return wish;
  }

  const Options &options;
  std::string chip, windows;
  uint64_t channelLimit = 0;
  std::unique_ptr<jit::CudaKernel> kernel;
  /// The place in a launched job.
  std::optional<JobRank> place;
  RankTask task;
};

} // namespace

static std::unique_ptr<Target> create(const Options &options) {
  return std::make_unique<CudaTarget>(options);
}

static bool mustExitWithoutCleanup() {
  return cuda::isAnyWorldStuck() || isRankStuck();
}

static void allowProcesses() { processesAllowed = true; }

namespace commsir::driver {
const TargetKind &getCudaTarget() {
  static const TargetKind kind = {"cuda",
                                  ::create,
                                  ::mustExitWithoutCleanup,
                                  cuda::mayShareGpus,
                                  cuda::keepDevicesOpen,
                                  ::allowProcesses,
                                  runRankProcess,
                                  examineCuda};
  return kind;
}
} // namespace commsir::driver
