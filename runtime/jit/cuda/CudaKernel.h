//===- CudaKernel.h - Module in, GPU machine code out -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pipeline comms-to-nvvm on a module and makes a cubin (or PTX) of one
// kernel. Needs no GPU: runtime/cuda loads and launches what comes out.
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
  /// Logical blocks of each rank; 0: the kernel's own, else chosen.
  int64_t blocks = 0;
  /// Elements of a flat tile; 0: chosen.
  int64_t tileSize = 0;
  /// Threads of a CTA, a power of two from 32 to 1024; 0: chosen.
  int64_t threads = 0;
  /// CTAs of a logical block; 0: chosen.
  int64_t cluster = 0;
  /// "sm_90".
  std::string chip = "sm_90";
  /// For all collectives; empty: each op's own, else the cheapest.
  std::string algorithm, protocol;
  /// Run comms-check-sync.
  bool check = true;
  /// Budget of events of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// Check at run time the offsets that cannot be proven in bounds.
  bool assertBounds = true;
  /// 0, 1, 2 or 3: effort of the optimisers.
  unsigned optLevel = 3;
  /// "nvjitlink", "ptxas", "driver" (PTX stays PTX: for a driver that is older
  /// than the linker); empty: see linkPtx.
  std::string linker;
  /// "nccl": windows and barriers are NCCL's own, too; empty: generated, and
  /// only GIN calls NCCL.
  std::string impl;
  /// Channels lie in memory that the kernels of a group take in turn
  /// (lowering/nvvm/Abi.h).
  bool sharedChannels = false;
  /// Finds the NCCL that is loaded, for kernels that call its device library;
  /// not called for others. Null: there is none.
  std::function<llvm::Expected<NcclInstallation>()> nccl;
};

/// Grid of a kernel: blocks * cluster CTAs of `threads` threads.
struct LaunchShape {
  int64_t blocks = 1, threads = 1, cluster = 1;
  /// Bytes of dynamic shared memory of a CTA.
  int64_t dynamicShared = 0;
  /// The kernel begins with griddepcontrol.wait, so that a launch may begin
  /// before the launch ahead of it in the stream has ended.
  bool overlap = false;
  /// Its channels lie in memory that the kernels of a group take in turn.
  bool shared = false;
};

/// A kernel in machine code of one GPU generation, with what is known about it.
class CudaKernel {
public:
  ~CudaKernel();
  llvm::StringRef name() const;
  /// Of the entry in the machine code.
  llvm::StringRef entry() const;
  /// A cubin, or PTX (see `isPtx`) as text that ends in a zero byte.
  llvm::ArrayRef<char> code() const;
  bool isPtx() const;
  /// "sm_90".
  llvm::StringRef chip() const;
  llvm::ArrayRef<ArgInfo> args() const;
  llvm::ArrayRef<Choice> choices() const;
  /// The certificate: what the checker said when the kernel was compiled, and
  /// of which kernel. It is kept in the cache with the code.
  const ProofInfo &proof() const;
  llvm::ArrayRef<SourceSite> sites() const;
  int64_t ranks() const;
  /// Ranks that share load/store reach.
  int64_t lsaSize() const;
  LaunchShape shape() const;
  /// Size of the parameter struct of lowering/nvvm/Abi.h.
  int64_t paramBytes() const;
  /// Of a kernel that calls NCCL's device library.
  const std::optional<NcclRequirements> &nccl() const;
  /// Registers of a thread; 0: not known.
  unsigned registers() const;
  /// Static shared memory of a CTA in bytes, with what the system takes of it;
  /// 0: not known.
  unsigned sharedBytes() const;
  /// Stack of a thread in bytes.
  unsigned stackBytes() const;
  /// What made the machine code: "nvJitLink 13.0 (<path>)", "ptxas (<path>)" or
  /// "driver".
  llvm::StringRef linker() const;
  /// It was in the cache; nothing was compiled.
  bool cached() const;
  /// Number of the argument of that name, or -1.
  int findArg(llvm::StringRef name) const;

private:
  struct Data;
  explicit CudaKernel(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data;
  friend struct CudaKernelFactory;
};

/// Compiles kernel `name` (empty: the only one) of `module`, which it consumes.
/// Diagnostics go to the module's context; the Error is a summary that names
/// the stage that failed (see isCheckerRefusal). What is in the cache
/// (runtime/jit/Cache.h) is not compiled again; then there are no diagnostics.
llvm::Expected<std::unique_ptr<CudaKernel>>
compileCuda(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
            const CudaOptions &options);

/// Where the cache has the kernel that a source, text or bytecode, was compiled
/// to. To look for it takes no parser, no MLIR context and no choice.
class SourceEntry {
public:
  /// `variant` is all that the kernel depends on beside the source, the name
  /// and the options as they are: the name of the file, shapes that fix dynamic
  /// dimensions, what open options are chosen from.
  SourceEntry(llvm::StringRef source, llvm::StringRef variant,
              llvm::StringRef name, const CudaOptions &options,
              Cache &cache = Cache::shared());

  /// The kernel; null: it is not there.
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
