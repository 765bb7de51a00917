//===- CudaKernel.h - Module in, GPU machine code out -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pipeline comms-to-nvvm on a module and generates a cubin (or PTX)
// for one kernel. Needs no GPU: runtime/cuda loads and launches the result.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_CUDAKERNEL_H
#define COMMSIR_RUNTIME_JIT_CUDA_CUDAKERNEL_H

#include "runtime/jit/Cache.h"
#include "runtime/jit/Compile.h"
#include "runtime/jit/cuda/NcclRequirements.h"

#include <functional>
#include <optional>

namespace commsir::jit {

struct CudaOptions {
  /// Number of ranks; 0: the kernel's own.
  int64_t ranks = 0;
  /// Logical blocks per rank; 0: the kernel's own, else chosen.
  int64_t blocks = 0;
  /// Elements of a flat tile; 0: chosen.
  int64_t tileSize = 0;
  /// Threads per CTA, a power of two from 32 to 1024; 0: chosen.
  int64_t threads = 0;
  /// CTAs per logical block; 0: chosen.
  int64_t cluster = 0;
  /// "sm_90".
  std::string chip = "sm_90";
  /// Used for all collectives; empty: each op's own, else the cheapest.
  std::string algorithm, protocol;
  /// Run comms-check-sync.
  bool check = true;
  /// Event budget of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// Check offsets at run time that cannot be proven to be in bounds.
  bool assertBounds = true;
  /// Optimization level: 0, 1, 2 or 3.
  unsigned optLevel = 3;
  /// "nvjitlink", "ptxas" or "driver" (keeps PTX, for a driver older than the
  /// linker); empty: see linkPtx.
  std::string linker;
  /// "nccl": windows and barriers use NCCL as well; empty: they are generated,
  /// and only GIN calls NCCL.
  std::string impl;
  /// Channels lie in memory that the kernels of a group use in turn
  /// (lowering/nvvm/Abi.h).
  bool sharedChannels = false;
  /// Finds the loaded NCCL. Called only for kernels that call its device
  /// library. Null: there is none.
  std::function<llvm::Expected<NcclInstallation>()> nccl;
};

/// Grid of a kernel: blocks * cluster CTAs with `threads` threads each.
struct LaunchShape {
  int64_t blocks = 1, threads = 1, cluster = 1;
  /// Dynamic shared memory per CTA in bytes.
  int64_t dynamicShared = 0;
  /// The kernel begins with griddepcontrol.wait, so that a launch may begin
  /// before the preceding launch in the stream has ended.
  bool overlap = false;
  /// Its channels lie in memory that the kernels of a group use in turn.
  bool shared = false;
};

/// A kernel in machine code for one GPU generation, with its description.
class CudaKernel {
public:
  ~CudaKernel();
  llvm::StringRef name() const;
  /// Name of the entry function.
  llvm::StringRef entry() const;
  /// A cubin, or, if `isPtx`, PTX that ends in a zero byte.
  llvm::ArrayRef<char> code() const;
  bool isPtx() const;
  /// "sm_90".
  llvm::StringRef chip() const;
  llvm::ArrayRef<ArgInfo> args() const;
  llvm::ArrayRef<Choice> choices() const;
  /// The certificate: the checker's verdict at compile time and the kernel it
  /// refers to. Stored in the cache with the code.
  const ProofInfo &proof() const;
  llvm::ArrayRef<SourceSite> sites() const;
  int64_t ranks() const;
  /// Ranks that share load/store reach.
  int64_t lsaSize() const;
  LaunchShape shape() const;
  /// Size of the parameter struct of lowering/nvvm/Abi.h.
  int64_t paramBytes() const;
  /// Set if the kernel calls NCCL's device library.
  const std::optional<NcclRequirements> &nccl() const;
  /// Registers per thread; 0: unknown.
  unsigned registers() const;
  /// Static shared memory per CTA in bytes, including the system's share; 0:
  /// unknown.
  unsigned sharedBytes() const;
  /// Stack per thread in bytes.
  unsigned stackBytes() const;
  /// Linker that made the machine code: "nvJitLink 13.0 (<path>)", "ptxas
  /// (<path>)" or "driver".
  llvm::StringRef linker() const;
  /// Whether the kernel came from the cache.
  bool cached() const;
  /// Index of the argument of that name, or -1.
  int findArg(llvm::StringRef name) const;

private:
  struct Data;
  explicit CudaKernel(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data;
  friend struct CudaKernelFactory;
};

/// Compiles kernel `name` (empty: the only kernel) of `module`, which it
/// consumes. Diagnostics go to the module's context; the Error is a summary
/// that names the failed stage (see isCheckerRefusal). A cached kernel
/// (runtime/jit/Cache.h) is not compiled again and has no diagnostics.
llvm::Expected<std::unique_ptr<CudaKernel>>
compileCuda(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
            const CudaOptions &options);

/// Finds a source's compiled kernel in the cache, without a parser, an MLIR
/// context or a choice. The source may be text or bytecode.
class SourceEntry {
public:
  /// `variant` covers everything that the kernel depends on besides source,
  /// name and options: the file's name, shapes that fix dynamic dimensions, and
  /// the inputs of automatic choices.
  SourceEntry(llvm::StringRef source, llvm::StringRef variant,
              llvm::StringRef name, const CudaOptions &options,
              Cache &cache = Cache::shared());

  /// The kernel; null: not in the cache.
  std::unique_ptr<CudaKernel> find() const;
  /// Lets `find` return a kernel of `compileCuda` from now on.
  void keep(const CudaKernel &kernel);

private:
  std::function<llvm::Expected<NcclInstallation>()> nccl;
  Cache &cache;
  CacheKey key;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_CUDAKERNEL_H
