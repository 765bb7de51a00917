//===- Libraries.h - Finds CUDA's libraries ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nvJitLink and NVRTC may come with torch or a toolkit, or be missing; they are
// loaded on demand.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H
#define COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace commsir::jit {

/// The value of an environment variable; empty: not set.
llvm::StringRef getEnvironment(const char *name);

/// A CUDA library.
struct CudaLibrary {
  /// Prefix of the file's name: "libnvrtc.so".
  llvm::StringRef stem;
  /// File names, newest first.
  llvm::SmallVector<const char *, 2> names;
  /// Folder of its CUDA 12 Python package, below `nvidia`.
  llvm::StringRef package;
  /// Environment variable that names the file.
  const char *variable;
};

/// Files that may hold the library, most likely first: the one that the user
/// named (sets `chosen`), else the loaded one, else those in Python packages
/// next to a loaded torch or next to CommsIR, in LD_LIBRARY_PATH and in CUDA's
/// folders, and finally bare names for the system's search.
llvm::SmallVector<std::string> listCudaLibraries(const CudaLibrary &library,
                                                 bool &chosen);

/// Folder `below` of CUDA_HOME, CUDA_PATH and /usr/local/cuda.
llvm::SmallVector<std::string> listCudaFolders(llvm::StringRef below);

/// Path, size and modification time of a file; only the path if it does not
/// exist.
std::string identifyFile(llvm::StringRef path);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_LIBRARIES_H
