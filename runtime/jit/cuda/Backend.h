//===- Backend.h - Where a GPU kernel comes from ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of compileCuda, for what wants one of them alone.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_BACKEND_H
#define COMMSIR_RUNTIME_JIT_CUDA_BACKEND_H

#include "runtime/jit/Cache.h"
#include "runtime/jit/Prepare.h"
#include "runtime/jit/Proof.h"
#include "runtime/jit/cuda/CudaKernel.h"
#include "runtime/jit/cuda/Link.h"

namespace commsir::jit {

/// A kernel before it is machine code.
struct PtxKernel {
  std::string ptx, entry;
  Description description;
  LaunchShape shape;
  int64_t paramBytes = 0;
  std::optional<NcclRequirements> nccl;
  /// PTX of functions that `ptx` calls; empty: none.
  std::string library;
  /// To be settled before anybody gets the code; null: none was asked for.
  std::unique_ptr<Proof> proof;
};

/// Lowers the one kernel of `module` by the pipeline comms-to-nvvm and makes
/// PTX of it. The checker may still be at work then: see `proof`.
llvm::Expected<PtxKernel> makePtx(mlir::ModuleOp module, llvm::StringRef name,
                                  const CudaOptions &options);

/// All that a launch needs: what an entry of the cache holds.
struct KernelContents {
  std::string name, entry, chip, linker;
  bool isPtx = false;
  Description description;
  LaunchShape shape;
  int64_t paramBytes = 0;
  CubinFacts facts;
  std::optional<NcclRequirements> nccl;
  /// The device library that is in the code (identifyDeviceCode); empty: none.
  std::string ncclCode;
};

/// Writes contents and code as bytes; the code comes first, at a multiple
/// of 16.
std::string encodeKernel(const KernelContents &contents, llvm::StringRef code);

/// Reads what `encodeKernel` wrote; `code` points into `bytes`. False when the
/// bytes are anything else.
bool decodeKernel(llvm::StringRef bytes, KernelContents &contents,
                  llvm::StringRef &code);

/// What makes PTX of a prepared module: `makePtx`, but for tests.
using PtxMaker = llvm::function_ref<llvm::Expected<PtxKernel>(
    mlir::ModuleOp module, llvm::StringRef name, const CudaOptions &options)>;

/// `compileCuda` with a cache and a maker of PTX of the caller's choice.
llvm::Expected<std::unique_ptr<CudaKernel>>
compileCudaWith(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
                const CudaOptions &options, Cache &cache, PtxMaker maker);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_BACKEND_H
