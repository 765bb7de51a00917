//===- NcclDevice.cpp - The device library, embedded ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/NcclDevice.h"

#include <nccl.h>

#include <cstddef>

namespace commsir::embedded {
extern const unsigned char ncclDeviceBitcode[];
extern const size_t ncclDeviceBitcodeSize;
extern const unsigned char ncclDevicePtx[];
extern const size_t ncclDevicePtxSize;
} // namespace commsir::embedded

using namespace commsir;

llvm::StringRef cuda::getNcclDeviceBitcode() {
  return {reinterpret_cast<const char *>(embedded::ncclDeviceBitcode),
          embedded::ncclDeviceBitcodeSize};
}

llvm::StringRef cuda::getNcclDevicePtx() {
  return {reinterpret_cast<const char *>(embedded::ncclDevicePtx),
          embedded::ncclDevicePtxSize};
}

int cuda::getNcclDeviceVersion() { return NCCL_VERSION_CODE; }
