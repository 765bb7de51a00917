//===- GroupRequest.h - From a request to machine code ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_GROUPREQUEST_H
#define COMMSIR_RUNTIME_GROUP_CUDA_GROUPREQUEST_H

#include "runtime/choose/Choose.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/group/Group.h"
#include "runtime/jit/cuda/CudaKernel.h"

namespace commsir::cuda {

/// Digest of everything that ranks must agree on, without the machine code:
/// source, arguments, algorithm, protocol and grid. Never 0.
uint64_t digestOf(const group::KernelRequest &request,
                  const jit::CudaKernel &kernel);

/// Key of a request within a group.
std::string keyOf(const group::KernelRequest &request);

/// Limits of the automatic choice.
struct RequestLimits {
  /// Maximum channel memory in bytes.
  uint64_t memory = 0;
  /// As `tune::ConfigQuery::ctas`.
  int64_t ctas = 0;
  /// Multiprocessors that every rank has; 0: those of the device.
  int64_t multiprocessors = 0;
};

/// Fills in what all ranks' machines have in common.
void describeMachine(const Device &device, const RequestLimits &limits,
                     tune::ConfigQuery &query);

/// Compiles a request's source to machine code.
llvm::Expected<std::unique_ptr<jit::CudaKernel>>
compileRequest(const group::KernelRequest &request, int64_t ranks,
               const Device &device, const RequestLimits &limits);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_GROUPREQUEST_H
