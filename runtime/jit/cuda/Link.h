//===- Link.h - PTX becomes a cubin -----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever is on the machine does it, in this order: nvJitLink in this process,
// ptxas as a program, the driver when it loads the kernel. None of them is
// needed to build CommsIR.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_LINK_H
#define COMMSIR_RUNTIME_JIT_CUDA_LINK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace commsir::jit {

/// What a cubin says of a kernel.
struct CubinFacts {
  /// Registers of a thread; 0: not known.
  unsigned registers = 0;
  /// Static shared memory of a CTA in bytes; from sm_90 on with the kilobyte
  /// that the system takes.
  unsigned sharedBytes = 0;
  /// Stack of a thread in bytes.
  unsigned stackBytes = 0;
};

struct LinkedCode {
  /// A cubin, or the PTX with a zero byte at its end.
  std::string code;
  bool isPtx = false;
  /// "nvJitLink 13.0 (/usr/…)", "ptxas (/usr/…)" or "driver".
  std::string linker;
  CubinFacts facts;
};

/// Makes machine code of `ptx` for `chip` ("sm_90"). `which` is "nvjitlink",
/// "ptxas", "driver" or empty: COMMSIR_LINKER, else the first that is there.
/// nvJitLink is COMMSIR_NVJITLINK_LIBRARY, else the one that is loaded, else
/// one in a Python package beside a loaded torch or beside CommsIR, else one in
/// LD_LIBRARY_PATH, CUDA_HOME,
/// CUDA_PATH, /usr/local/cuda or where the system looks; ptxas is
/// COMMSIR_PTXAS, else likewise in PATH, CUDA_HOME, CUDA_PATH and
/// /usr/local/cuda.
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

/// Loads what `linkPtx` will load, ahead of it. Errors are left for `linkPtx`.
void preloadLinker(llvm::StringRef which);

/// Tells linkers and their versions apart, in a key of the cache. Loads none
/// (that takes 8 ms) where a look at the files will do. Never fails: what is
/// wrong shows when something is linked.
std::string identifyLinker(llvm::StringRef which);

/// Reads what `cubin` says of `entry`; zeros where it says nothing, or is none.
CubinFacts readCubin(llvm::StringRef cubin, llvm::StringRef entry);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_LINK_H
