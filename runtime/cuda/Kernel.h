//===- Kernel.h - A compiled kernel on one GPU ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_KERNEL_H
#define COMMSIR_RUNTIME_CUDA_KERNEL_H

#include "lowering/nvvm/Abi.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/jit/cuda/CudaKernel.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace commsir::cuda {

/// What a kernel's state says at first.
struct StateOptions {
  /// Seconds that one poll may take before the kernel ends with a report;
  /// 0: no limit.
  double timeout = 10;
  /// Times that a poll looks before it reads clock and abort word.
  uint64_t spin = 1024;
  /// Of what all ranks must agree on; 0: not known.
  uint64_t digest = 0;
  /// Number of the first launch; more than 1 as if others had ended before.
  uint64_t firstLaunch = 1;
};

/// A hidden scalar of a kernel that calls NCCL (lowering/nvvm/Abi.h).
struct NcclArgument {
  enum Kind { Comm, Window, Offset, First } kind = Comm;
  /// In the parameter struct.
  size_t place = 0;
  /// Number of the argument that it is of.
  unsigned of = 0;
  /// Value of a First.
  uint64_t first = 0;
};

/// Of a timeout in seconds, as kernels take it.
inline uint64_t toNanoseconds(double seconds) {
  return uint64_t(std::min(seconds, 1e9) * 1e9);
}

/// Machine code of a kernel, loaded on a GPU. Functions need the device's
/// context current.
class KernelCode {
public:
  /// Refuses, with the numbers, a grid that cannot be resident at once, and
  /// machine code for another GPU. Both arguments must outlive it.
  static llvm::Expected<std::unique_ptr<KernelCode>>
  load(const Device &device, const jit::CudaKernel &kernel);
  ~KernelCode();

  /// The parameter struct, filled but for the arguments and the state.
  std::vector<uint64_t> makeParams(int rank) const;
  /// Place of argument number `arg` in it.
  size_t placeOf(unsigned arg) const { return places[arg]; }
  /// Place of the state's address in it.
  static constexpr size_t kStatePlace =
      offsetof(mlir::comms::nvvm::Launch, state) / sizeof(uint64_t);
  /// Place of the launch's extent in it.
  static constexpr size_t kExtentPlace =
      offsetof(mlir::comms::nvvm::Launch, extent) / sizeof(uint64_t);

  /// Whether launches take a device communicator.
  bool needsDeviceComm() const;
  /// Fills in its address.
  void bindDeviceComm(uint64_t *params, CUdeviceptr comm) const;
  /// Fills in where NCCL has window argument `arg`.
  void bindNcclWindow(uint64_t *params, unsigned arg, uint64_t handle,
                      uint64_t offset) const;

  /// Puts one launch into `stream`, which may be capturing.
  CUresult launch(const uint64_t *params, CUstream stream) const;
  /// The error of such a launch.
  llvm::Error explain(CUresult result) const;

  const Device &getDevice() const { return device; }
  const jit::CudaKernel &getKernel() const { return kernel; }
  /// Registers of a thread and blocks (or clusters) that fit the GPU, for the
  /// report.
  int getRegisters() const { return registers; }
  int64_t getResident() const { return resident; }

private:
  KernelCode(const Device &device, const jit::CudaKernel &kernel);
  llvm::Error loadCode();
  llvm::Error checkResident();
  llvm::Error layOut();
  llvm::Error findNcclArguments();

  const Device &device;
  const jit::CudaKernel &kernel;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config{};
  int registers = 0;
  int64_t resident = 0;
  std::vector<size_t> places;
  size_t words = 0;
  std::vector<NcclArgument> ncclArguments;
};

/// What a kernel's State and the BlockStates behind it are at first; what is
/// left out at the end is zeros.
std::vector<char> makeState(const jit::CudaKernel &kernel,
                            const StateOptions &options, CUdeviceptr record);

/// One rank's instance of a kernel: machine code loaded on its GPU, its state,
/// and the values of its arguments. Functions need the device's context
/// current, but for `abort` and `failure`, which any thread may call.
class LoadedKernel {
public:
  using ErrorRecord = mlir::comms::nvvm::ErrorRecord;

  /// Loads `kernel` as rank `rank`. Refuses what KernelCode refuses. Both
  /// arguments must outlive it.
  static llvm::Expected<std::unique_ptr<LoadedKernel>>
  load(const Device &device, const jit::CudaKernel &kernel, int rank,
       const StateOptions &options);
  ~LoadedKernel();

  /// Parts of a window or a signal, by world rank.
  void bindParts(unsigned arg, llvm::ArrayRef<CUdeviceptr> parts);
  /// Base of a memory or a counter.
  void bindBase(unsigned arg, CUdeviceptr base);
  /// As KernelCode's.
  bool needsDeviceComm() const { return code->needsDeviceComm(); }
  void bindDeviceComm(CUdeviceptr comm);
  void bindNcclWindow(unsigned arg, uint64_t handle, uint64_t offset);
  /// Value of a scalar, at most 8 bytes.
  void bindScalar(unsigned arg, llvm::ArrayRef<char> bytes);

  /// Puts one launch into `stream`, which may be capturing. All arguments must
  /// be bound.
  llvm::Error launch(CUstream stream) const;

  /// Asks a kernel that runs to end: queues the write of its abort word.
  llvm::Error abort();
  /// What the kernel has reported, or none. May be read while it runs.
  std::optional<ErrorRecord> failure() const;

  int getRegisters() const { return code->getRegisters(); }
  int64_t getResident() const { return code->getResident(); }

private:
  explicit LoadedKernel(std::unique_ptr<KernelCode> code);
  llvm::Error prepare(int rank, const StateOptions &options);

  const Device &device;
  std::unique_ptr<KernelCode> code;
  CUstream control = nullptr;
  std::optional<Memory> state, record;
  std::vector<uint64_t> params;
  /// Pinned, for the abort word's copy.
  std::optional<Memory> one;
};

/// "signal from rank 1: observed 6, expected 7".
std::string describeFailure(const LoadedKernel::ErrorRecord &record);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_KERNEL_H
