//===- KernelSource.h - Text in, CPU kernel out -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_KERNELSOURCE_H
#define COMMSIR_RUNTIME_GROUP_KERNELSOURCE_H

#include "runtime/jit/Compile.h"

namespace commsir::group {

struct CompiledSource {
  std::unique_ptr<jit::Kernel> kernel;
  /// The result comes from the cache.
  bool cached = false;
};

/// Compiles kernel `name` (empty: the only kernel) from MLIR text or bytecode,
/// once for all processes that share a cache (runtime/jit/Cache.h). Of
/// `options`, only the ranks, blocks, algorithm, protocol and `check` may
/// differ from their defaults: the cache knows no others. An error holds the
/// compiler's diagnostics.
llvm::Expected<CompiledSource>
compileSource(llvm::StringRef source, llvm::StringRef name,
              const jit::CompileOptions &options);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_KERNELSOURCE_H
