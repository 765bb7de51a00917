//===- DeviceLibrary.h - Device code for the loaded NCCL --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL's device API is header files whose structures change with every release,
// so code over it (lowering/nvvm/device/NcclDevice.cu) belongs to one release:
// that of the library that is loaded. For the one that CommsIR was built with,
// bitcode and PTX are embedded. For any other, NVRTC compiles the same source
// against the headers beside the loaded library, once: what comes out is kept
// in the cache (runtime/jit/Cache.h).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_DEVICELIBRARY_H
#define COMMSIR_RUNTIME_JIT_CUDA_DEVICELIBRARY_H

#include "runtime/jit/Cache.h"
#include "runtime/jit/cuda/NcclRequirements.h"
#include "runtime/jit/cuda/Nvrtc.h"

#include <string>
#include <vector>

namespace commsir::jit {

/// "2.28.9".
std::string formatNcclVersion(int version);

/// What of the device library is wanted.
enum class DevicePart {
  /// The runtime's kernels: commsir_resolve_window, commsir_require, …
  Kernels,
  /// All functions, to be linked with a kernel that calls them.
  Functions,
};

/// Code over the device API of one NCCL.
struct DeviceCode {
  /// Kernels: what a driver loads, PTX with a zero byte at its end or a cubin.
  /// Functions: LLVM bitcode, or PTX as text.
  std::string code;
  bool isBitcode = false;
  /// Release of the headers it was compiled with.
  int version = 0;
  /// "embedded", or what compiled it and against which headers.
  std::string origin;
  /// Nothing was compiled.
  bool cached = false;
};

/// The headers of one release, as NVRTC takes them.
struct NcclHeaders {
  std::string folder;
  std::vector<NvrtcHeader> headers;
  /// Of their texts, 64 hexadecimal digits.
  std::string digest;
};

/// The headers that belong to `nccl`: those of COMMSIR_NCCL_INCLUDE where that
/// is set, else those beside the library (`../include`, and `../../include` for
/// a library in `/usr/lib/x86_64-linux-gnu`). The release in their nccl.h must
/// be the library's: a host can hold two NCCLs. The error names the releases
/// that were found and where.
llvm::Expected<NcclHeaders> findNcclHeaders(const NcclInstallation &nccl);

/// Code for `nccl` on `chip` ("sm_90"). The embedded code where its release is
/// the same, unless COMMSIR_NCCL_DEVICE is "nvrtc"; else NVRTC's.
llvm::Expected<DeviceCode> getDeviceCode(const NcclInstallation &nccl,
                                         DevicePart part, llvm::StringRef chip,
                                         Cache &cache);

/// Tells apart what `getDeviceCode` gives, in keys of the cache: "22809", or a
/// release and the digest of its headers.
llvm::Expected<std::string> identifyDeviceCode(const NcclInstallation &nccl);

/// Whether `getDeviceCode` has all that it needs for `nccl`; compiles nothing.
llvm::Error checkDeviceCode(const NcclInstallation &nccl);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_DEVICELIBRARY_H
