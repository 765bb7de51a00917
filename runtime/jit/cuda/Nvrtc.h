//===- Nvrtc.h - CUDA C++ in, PTX out ---------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVRTC, loaded when it is needed. It compiles the device library for an NCCL
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

/// A header in memory: what `#include <name>` gives.
struct NvrtcHeader {
  std::string name, text;
};

/// PTX of `source`, which messages call `name`. NVRTC is
/// COMMSIR_NVRTC_LIBRARY, else it is looked for as nvJitLink is (Link.h).
/// `headers` are all that can be included. The error of a compilation that
/// fails has NVRTC's log.
llvm::Expected<std::string> compileByNvrtc(llvm::StringRef source,
                                           llvm::StringRef name,
                                           llvm::ArrayRef<NvrtcHeader> headers,
                                           llvm::ArrayRef<std::string> options);

/// "NVRTC 13.0 (<path>)", or why there is none and what to do.
llvm::Expected<std::string> describeNvrtc();

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_NVRTC_H
