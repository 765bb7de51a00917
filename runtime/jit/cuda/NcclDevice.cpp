//===- NcclDevice.cpp - The device library, embedded ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/NcclDevice.h"

#include <nccl.h>

#include <cstddef>

namespace commsir::embedded {
extern const unsigned char ncclDeviceBitcode[];
extern const size_t ncclDeviceBitcodeSize;
extern const unsigned char ncclDevicePtx[];
extern const size_t ncclDevicePtxSize;
extern const unsigned char ncclDeviceSource[];
extern const size_t ncclDeviceSourceSize;
extern const unsigned char nvrtcTypes[];
extern const size_t nvrtcTypesSize;
extern const unsigned char nvrtcAtomic[];
extern const size_t nvrtcAtomicSize;
} // namespace commsir::embedded

using namespace commsir;

static llvm::StringRef view(const unsigned char *bytes, size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}

llvm::StringRef cuda::getNcclDeviceBitcode() {
  return view(embedded::ncclDeviceBitcode, embedded::ncclDeviceBitcodeSize);
}

llvm::StringRef cuda::getNcclDevicePtx() {
  return view(embedded::ncclDevicePtx, embedded::ncclDevicePtxSize);
}

llvm::StringRef cuda::getNcclDeviceSource() {
  return view(embedded::ncclDeviceSource, embedded::ncclDeviceSourceSize);
}

llvm::StringRef cuda::getNvrtcTypes() {
  return view(embedded::nvrtcTypes, embedded::nvrtcTypesSize);
}

llvm::StringRef cuda::getNvrtcAtomic() {
  return view(embedded::nvrtcAtomic, embedded::nvrtcAtomicSize);
}

int cuda::getNcclDeviceVersion() { return NCCL_VERSION_CODE; }
