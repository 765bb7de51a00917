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

/// Initial contents of a kernel's state.
struct StateOptions {
  /// Timeout of one poll in seconds, after which the kernel ends with a report;
  /// 0: no limit.
  double timeout = 10;
  /// Number of polls before the kernel reads the clock and the abort word.
  uint64_t spin = 1024;
  /// Digest of what all ranks must agree on; 0: unknown.
  uint64_t digest = 0;
  /// Number of the first launch; above 1: as if earlier launches had ended.
  uint64_t firstLaunch = 1;
};

/// A hidden scalar of a kernel that calls NCCL (lowering/nvvm/Abi.h).
struct NcclArgument {
  enum Kind { Comm, Window, Offset, First } kind = Comm;
  /// Offset in the parameter struct in bytes.
  size_t place = 0;
  /// Index of the argument that it describes.
  unsigned of = 0;
  /// Value if its kind is First.
  uint64_t first = 0;
};

/// Converts a timeout in seconds to the unit of kernels.
inline uint64_t toNanoseconds(double seconds) {
  return uint64_t(std::min(seconds, 1e9) * 1e9);
}

/// A kernel's machine code, loaded on a GPU. Functions need the device's
/// context to be current.
class KernelCode {
public:
  /// Loads `kernel`. Refuses machine code for another GPU, and a grid that
  /// cannot be fully resident; the error gives the numbers. Both arguments must
  /// outlive the result.
  static llvm::Expected<std::unique_ptr<KernelCode>>
  load(const Device &device, const jit::CudaKernel &kernel);
  ~KernelCode();

  /// The parameter struct without the values of arguments and state.
  std::vector<uint64_t> makeParams(int rank) const;
  /// Offset of argument `arg` in bytes.
  size_t placeOf(unsigned arg) const { return places[arg]; }
  /// Offset of the state's address in bytes.
  static constexpr size_t kStatePlace =
      offsetof(mlir::comms::nvvm::Launch, state) / sizeof(uint64_t);
  /// Offset of the launch's extent in bytes.
  static constexpr size_t kExtentPlace =
      offsetof(mlir::comms::nvvm::Launch, extent) / sizeof(uint64_t);

  /// Whether launches take a device communicator.
  bool needsDeviceComm() const;
  /// Stores the device communicator's address.
  void bindDeviceComm(uint64_t *params, CUdeviceptr comm) const;
  /// Stores NCCL's handle for window argument `arg`.
  void bindNcclWindow(uint64_t *params, unsigned arg, uint64_t handle,
                      uint64_t offset) const;

  /// Enqueues one launch in `stream`, which may be capturing.
  CUresult launch(const uint64_t *params, CUstream stream) const;
  /// Converts the result of such a launch to an error.
  llvm::Error explain(CUresult result) const;

  const Device &getDevice() const { return device; }
  const jit::CudaKernel &getKernel() const { return kernel; }
  /// Registers per thread, and blocks (or clusters) that fit the GPU, for the
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

/// Initial bytes of a kernel's State and BlockStates; omitted bytes at the end
/// are zero.
std::vector<char> makeState(const jit::CudaKernel &kernel,
                            const StateOptions &options, CUdeviceptr record);

/// One rank's instance of a kernel: machine code loaded on its GPU, its state,
/// and its argument values. Functions need the device's context to be current,
/// except `abort` and `failure`, which are thread-safe.
class LoadedKernel {
public:
  using ErrorRecord = mlir::comms::nvvm::ErrorRecord;

  /// Loads `kernel` as rank `rank`. Fails as KernelCode does. Both arguments
  /// must outlive the result.
  static llvm::Expected<std::unique_ptr<LoadedKernel>>
  load(const Device &device, const jit::CudaKernel &kernel, int rank,
       const StateOptions &options);
  ~LoadedKernel();

  /// Binds the parts of a window or signal, by world rank.
  void bindParts(unsigned arg, llvm::ArrayRef<CUdeviceptr> parts);
  /// Binds the base address of a memory or counter.
  void bindBase(unsigned arg, CUdeviceptr base);
  /// As KernelCode's.
  bool needsDeviceComm() const { return code->needsDeviceComm(); }
  void bindDeviceComm(CUdeviceptr comm);
  void bindNcclWindow(unsigned arg, uint64_t handle, uint64_t offset);
  /// Binds a scalar of at most 8 bytes.
  void bindScalar(unsigned arg, llvm::ArrayRef<char> bytes);

  /// Enqueues one launch in `stream`, which may be capturing. All arguments
  /// must be bound.
  llvm::Error launch(CUstream stream) const;

  /// Asks a running kernel to end by enqueuing the write of its abort word.
  llvm::Error abort();
  /// Returns the failure that the kernel has reported, or none. May be called
  /// while it runs.
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
  /// Pinned source of the abort word's copy.
  std::optional<Memory> one;
};

/// "signal from rank 1: observed 6, expected 7".
std::string describeFailure(const LoadedKernel::ErrorRecord &record);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_KERNEL_H
