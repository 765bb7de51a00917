//===- WorldState.h - The state of a world on GPUs --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The world behind runtime/cuda/World.h, for the files that make it up:
//
//   World.cpp        the interface, steps that all ranks take, the end
//   WorldSetUp.cpp   GPUs, code, communicators, windows, memory
//   WorldRun.cpp     copies, launches, waiting, failures
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_WORLDSTATE_H
#define COMMSIR_RUNTIME_CUDA_WORLDSTATE_H

#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/TimedStream.h"
#include "runtime/cuda/World.h"

#include <atomic>
#include <functional>

namespace commsir::cuda {

/// Offsets of the arguments in the window and in the rank's own memory.
struct WorldLayout {
  std::vector<size_t> offsets;
  size_t windowBytes = 0, memoryBytes = 0;

  llvm::Error compute(llvm::ArrayRef<jit::ArgInfo> arguments);
};

/// State of one rank.
struct WorldRank {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Window> window;
  std::unique_ptr<DeviceComm> deviceComm;
  std::optional<Memory> memory;
  std::unique_ptr<LoadedKernel> kernel;
  TimedStream stream;
  /// By argument; empty for channel memory.
  std::vector<std::vector<char>> host;
  double microseconds = 0;

  /// Frees the members in the required order.
  void destroy();
};

struct World::Impl {
  Impl(const jit::CudaKernel &kernel, const RunOptions &options)
      : kernel(kernel), options(options), ranks(kernel.ranks()) {}

  llvm::Error create();
  void destroy();
  std::variant<cpu::RunStats, cpu::RunError> run();

  /// Runs a step with one thread per rank; an error ends the world.
  llvm::Error together(llvm::StringRef what, double seconds,
                       std::function<llvm::Error(WorldRank &, int)> work);
  /// Notes that a kernel or thread does not return.
  void setStuck();

  // Setup.
  llvm::Error openDevice(WorldRank &rank, int number);
  llvm::Error prepare(WorldRank &rank, int number);
  llvm::Error checkMemory(const Device &device) const;
  llvm::Error makeCommunicators();
  llvm::Error useNccl();
  llvm::Error usePlain(const llvm::Twine &why);
  llvm::Error makeWindow(WorldRank &rank, int number);
  void bindArguments(WorldRank &rank);
  llvm::Error makeDeviceComm(WorldRank &rank, int number);
  llvm::Error initialize(WorldRank &rank, int number);
  CUdeviceptr addressOf(WorldRank &rank, unsigned arg) const;

  // Execution.
  llvm::Error upload(WorldRank &rank);
  llvm::Error execute(WorldRank &rank);
  llvm::Error waitFor(WorldRank &rank);
  llvm::Error download(WorldRank &rank);
  bool hasFailed() const;
  double seconds() const;
  cpu::RunError explain(llvm::Error error, bool whileRunning);
  void addFailures(cpu::RunError &report) const;

  const jit::CudaKernel &kernel;
  RunOptions options;
  int64_t ranks;
  WorldLayout layout;
  std::vector<WorldRank> states;
  std::string windowsNote;
  ncclUniqueId id{};
  std::atomic<int> ready{0};
  std::atomic<bool> canceled{false};
  std::atomic<bool> stuck{false};
  bool broken = false;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_WORLDSTATE_H
