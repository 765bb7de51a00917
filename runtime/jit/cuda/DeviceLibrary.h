//===- DeviceLibrary.h - Device code for the loaded NCCL --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL's device API consists of headers whose structs change with every
// release, so that code compiled against it
// (lowering/nvvm/device/NcclDevice.cu) works only with that release of the
// library. Bitcode and PTX for the release that CommsIR was built with are
// embedded. For other releases NVRTC compiles the same source against the
// headers next to the loaded library, once; the cache (runtime/jit/Cache.h)
// stores the result.
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

/// The required part of the device library.
enum class DevicePart {
  /// The runtime's kernels: commsir_resolve_window, commsir_require, …
  Kernels,
  /// All functions, to link with a kernel that calls them.
  Functions,
};

/// Code for the device API of one NCCL release.
struct DeviceCode {
  /// Kernels: PTX with a final zero byte, or a cubin, for the driver.
  /// Functions: LLVM bitcode, or PTX text.
  std::string code;
  bool isBitcode = false;
  /// Release of the headers it was compiled against.
  int version = 0;
  /// "embedded", or the compiler and the headers.
  std::string origin;
  /// Nothing was compiled.
  bool cached = false;
};

/// The headers of one release, for NVRTC.
struct NcclHeaders {
  std::string folder;
  std::vector<NvrtcHeader> headers;
  /// Digest of their texts, 64 hexadecimal digits.
  std::string digest;
};

/// Finds the headers that match `nccl`: those in COMMSIR_NCCL_INCLUDE if set,
/// else those next to the library (`../include`, and `../../include` for a
/// library in `/usr/lib/x86_64-linux-gnu`). The release in nccl.h must equal
/// the library's, because a host may have two NCCLs. The error names the
/// releases that were found and their locations.
llvm::Expected<NcclHeaders> findNcclHeaders(const NcclInstallation &nccl);

/// Returns code for `nccl` on `chip` ("sm_90"): the embedded code if its
/// release matches, unless COMMSIR_NCCL_DEVICE is "nvrtc"; else code from
/// NVRTC. Any other value of the variable but "embedded", the default, is an
/// error.
llvm::Expected<DeviceCode> getDeviceCode(const NcclInstallation &nccl,
                                         DevicePart part, llvm::StringRef chip,
                                         Cache &cache);

/// Identifies the result of `getDeviceCode` in cache keys: "22809", or a
/// release and the digest of its headers.
llvm::Expected<std::string> identifyDeviceCode(const NcclInstallation &nccl);

/// Checks that `getDeviceCode` has everything it needs for `nccl`, without
/// compiling.
llvm::Error checkDeviceCode(const NcclInstallation &nccl);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_DEVICELIBRARY_H
