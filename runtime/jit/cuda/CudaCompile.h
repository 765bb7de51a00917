//===- CudaCompile.h - The steps of compileCuda -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The individual steps of compileCuda.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_CUDACOMPILE_H
#define COMMSIR_RUNTIME_JIT_CUDA_CUDACOMPILE_H

#include "runtime/jit/Cache.h"
#include "runtime/jit/Prepare.h"
#include "runtime/jit/Proof.h"
#include "runtime/jit/cuda/CudaKernel.h"
#include "runtime/jit/cuda/Link.h"

namespace commsir::jit {

/// A kernel before code generation by the linker.
struct PtxKernel {
  std::string ptx, entry;
  Description description;
  LaunchShape shape;
  int64_t paramBytes = 0;
  std::optional<NcclRequirements> nccl;
  /// PTX of functions that `ptx` calls; empty: none.
  std::string library;
  /// Must be finished before the code is used; null: no proof was requested.
  std::unique_ptr<Proof> proof;
};

/// Lowers the only kernel of `module` by the pipeline comms-to-nvvm and
/// generates PTX. The checker may still be running on return; see `proof`.
llvm::Expected<PtxKernel> makePtx(mlir::ModuleOp module, llvm::StringRef name,
                                  const CudaOptions &options);

/// Everything that a launch needs: the contents of a cache entry.
struct KernelContents {
  std::string name, entry, chip, linker;
  bool isPtx = false;
  Description description;
  LaunchShape shape;
  int64_t paramBytes = 0;
  CubinFacts facts;
  std::optional<NcclRequirements> nccl;
  /// The device library that the code contains (identifyDeviceCode); empty:
  /// none.
  std::string ncclCode;
};

/// Serializes contents and code. The code comes first, at a multiple of 16
/// bytes.
std::string encodeKernel(const KernelContents &contents, llvm::StringRef code);

/// Parses the result of `encodeKernel`; `code` points into `bytes`. Returns
/// false for other bytes.
bool decodeKernel(llvm::StringRef bytes, KernelContents &contents,
                  llvm::StringRef &code);

/// Generates PTX from a prepared module: `makePtx`, except in tests.
using PtxMaker = llvm::function_ref<llvm::Expected<PtxKernel>(
    mlir::ModuleOp module, llvm::StringRef name, const CudaOptions &options)>;

/// `compileCuda` with a given cache and PTX generator.
llvm::Expected<std::unique_ptr<CudaKernel>>
compileCudaWith(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
                const CudaOptions &options, Cache &cache, PtxMaker maker);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_CUDACOMPILE_H
