//===- Libraries.h - Where CUDA's libraries are -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nvJitLink and NVRTC come with torch, with a toolkit or not at all; they are
// opened when they are needed.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H
#define COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace commsir::jit {

/// The value of a variable of the environment; empty: it is not set.
llvm::StringRef getEnvironment(const char *name);

/// A library of CUDA.
struct CudaLibrary {
  /// How the file's name begins: "libnvrtc.so".
  llvm::StringRef stem;
  /// File names, newest first.
  llvm::SmallVector<const char *, 2> names;
  /// Folder of its Python package for CUDA 12, below `nvidia`.
  llvm::StringRef package;
  /// Variable of the environment that names the file.
  const char *variable;
};

/// The files that may hold the library, likeliest first: the one that the user
/// named (then `chosen`), else the one that is loaded, else those in a Python
/// package beside a loaded torch or beside CommsIR, in LD_LIBRARY_PATH and in
/// CUDA's folders, and last bare names, which only the system may know.
llvm::SmallVector<std::string> listCudaLibraries(const CudaLibrary &library,
                                                 bool &chosen);

/// Folder `below` of CUDA_HOME, CUDA_PATH and /usr/local/cuda.
llvm::SmallVector<std::string> listCudaFolders(llvm::StringRef below);

/// Path, size and age of a file; only the path when there is no such file.
std::string identifyFile(llvm::StringRef path);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H
