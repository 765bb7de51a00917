//===- CudaGroup.h - A group of GPUs ----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUP_H
#define COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUP_H

#include "runtime/cuda/Cuda.h"
#include "runtime/group/Group.h"
#include "runtime/jit/cuda/CudaKernel.h"

namespace commsir::group {

/// Makes this rank of a group whose ranks are GPUs. Collective. The store is
/// used during the call only.
llvm::Expected<std::unique_ptr<Group>> createCudaGroup(const GroupOptions &,
                                                       Store &);

} // namespace commsir::group

namespace commsir::cuda {

/// Describes how the windows of a group from createCudaGroup are made, and why:
/// "NCCL 2.28.9 (…/libnccl.so.2)".
llvm::StringRef getWindowsNote(const group::Group &group);

/// The GPU of the group.
const Device &getDevice(const group::Group &group);

/// Machine code of a kernel that such a group prepared.
const jit::CudaKernel &getCode(const group::GroupKernel &kernel);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUP_H
