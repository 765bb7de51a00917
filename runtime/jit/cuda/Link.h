//===- Link.h - PTX becomes a cubin -----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX is linked by the first available of nvJitLink (in this process), ptxas
// (as a program) and the driver (when it loads the kernel). Building CommsIR
// needs none of them.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_LINK_H
#define COMMSIR_RUNTIME_JIT_CUDA_LINK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace commsir::jit {

/// Properties of a kernel in a cubin.
struct CubinFacts {
  /// Registers per thread; 0: unknown.
  unsigned registers = 0;
  /// Static shared memory per CTA in bytes; from sm_90 on including the
  /// kilobyte that the system reserves.
  unsigned sharedBytes = 0;
  /// Stack per thread in bytes.
  unsigned stackBytes = 0;
};

struct LinkedCode {
  /// A cubin, or the PTX with a final zero byte.
  std::string code;
  bool isPtx = false;
  /// "nvJitLink 13.0 (/usr/…)", "ptxas (/usr/…)" or "driver".
  std::string linker;
  CubinFacts facts;
};

/// Makes machine code of `ptx` for `chip` ("sm_90"). `which` is "nvjitlink",
/// "ptxas", "driver" or empty: COMMSIR_LINKER, else the first that is there.
/// nvJitLink is COMMSIR_NVJITLINK_LIBRARY, else the one that is loaded, else
/// one in a Python package next to a loaded torch or next to CommsIR, else one
/// in LD_LIBRARY_PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda or where the
/// system looks; ptxas is COMMSIR_PTXAS, else likewise in PATH, CUDA_HOME,
/// CUDA_PATH and /usr/local/cuda.
///
/// A linker that does not know the chip or the version of the PTX hands over to
/// the next. When one refuses the PTX, the error has its text and the name of
/// the temporary file that keeps the PTX.
///
/// `library` is PTX of functions that `ptx` calls; empty: none. Only nvJitLink
/// links two.
llvm::Expected<LinkedCode> linkPtx(llvm::StringRef ptx, llvm::StringRef entry,
                                   llvm::StringRef chip, unsigned optLevel,
                                   llvm::StringRef which,
                                   llvm::StringRef library = {});

/// Loads in advance what `linkPtx` will load. `linkPtx` reports the errors.
void preloadLinker(llvm::StringRef which);

/// Identifies the linker and its version in cache keys. Avoids loading it (8
/// ms) if checking the files suffices. Never fails; errors appear when
/// something is linked.
std::string identifyLinker(llvm::StringRef which);

/// Reads the properties of `entry` in `cubin`; zeros if they are missing or it
/// is not a cubin.
CubinFacts readCubin(llvm::StringRef cubin, llvm::StringRef entry);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_LINK_H
