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

/// What all ranks must agree on, the machine code left out: source, arguments,
/// algorithm, protocol and grid. Never 0.
uint64_t digestOf(const group::KernelRequest &request,
                  const jit::CudaKernel &kernel);

/// Identity of a request within a group.
std::string keyOf(const group::KernelRequest &request);

/// What a choice keeps to, where there is one.
struct RequestLimits {
  /// Bytes of channels.
  uint64_t memory = 0;
  /// As `tune::ConfigQuery::ctas`.
  int64_t ctas = 0;
  /// That every rank has; 0: those of the device.
  int64_t multiprocessors = 0;
};

/// Tells a choice of the machine: what all ranks have in common.
void describeMachine(const Device &device, const RequestLimits &limits,
                     tune::ConfigQuery &query);

/// A request's source in machine code.
llvm::Expected<std::unique_ptr<jit::CudaKernel>>
compileRequest(const group::KernelRequest &request, int64_t ranks,
               const Device &device, const RequestLimits &limits);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_GROUPREQUEST_H
