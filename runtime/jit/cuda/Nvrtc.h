//===- Nvrtc.h - CUDA C++ in, PTX out ---------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVRTC, loaded on demand. It compiles the device library for an NCCL release
// that CommsIR was not built with (DeviceLibrary.h); kernels never need it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_NVRTC_H
#define COMMSIR_RUNTIME_JIT_CUDA_NVRTC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace commsir::jit {

/// A header in memory: the contents of `#include <name>`.
struct NvrtcHeader {
  std::string name, text;
};

/// Compiles `source`, called `name` in messages, to PTX. NVRTC is
/// COMMSIR_NVRTC_LIBRARY, else located like nvJitLink (Link.h). Only `headers`
/// can be included. The error of a failed compilation contains NVRTC's log.
llvm::Expected<std::string> compileByNvrtc(llvm::StringRef source,
                                           llvm::StringRef name,
                                           llvm::ArrayRef<NvrtcHeader> headers,
                                           llvm::ArrayRef<std::string> options);

/// "NVRTC 13.0 (<path>)", or the reason why it is missing and the remedy.
llvm::Expected<std::string> describeNvrtc();

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_NVRTC_H
