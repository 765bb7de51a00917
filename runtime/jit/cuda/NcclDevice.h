//===- NcclDevice.h - The device library, embedded --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_NCCLDEVICE_H
#define COMMSIR_RUNTIME_JIT_CUDA_NCCLDEVICE_H

#include "llvm/ADT/StringRef.h"

namespace commsir::cuda {

/// LLVM bitcode of lowering/nvvm/device/NcclDevice.cu, for sm_90.
llvm::StringRef getNcclDeviceBitcode();

/// PTX of its kernels, for sm_80 and newer; a zero byte follows the text.
llvm::StringRef getNcclDevicePtx();

/// NCCL release whose headers both were compiled against: 22809 is 2.28.9.
int getNcclDeviceVersion();

/// Its source, and replacements of the system's and CUDA's headers for NVRTC.
llvm::StringRef getNcclDeviceSource();
llvm::StringRef getNvrtcTypes();
llvm::StringRef getNvrtcAtomic();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_JIT_CUDA_NCCLDEVICE_H
