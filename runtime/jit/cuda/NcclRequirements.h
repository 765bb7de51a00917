//===- NcclRequirements.h - A kernel's requirements of NCCL -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CUDA_NCCLREQUIREMENTS_H
#define COMMSIR_RUNTIME_JIT_CUDA_NCCLREQUIREMENTS_H

#include <cstdint>
#include <string>

namespace commsir::jit {

/// An NCCL: its release as returned by ncclGetVersion (22809 is 2.28.9), and
/// the loaded file.
struct NcclInstallation {
  int version = 0;
  std::string path;
};

/// Resources that a kernel with calls of NCCL's device library needs in its
/// device communicator.
struct NcclRequirements {
  /// Number of barriers of each kind: one per block.
  int64_t lsaBarriers = 0, railBarriers = 0;
  /// GIN resources.
  int64_t contexts = 0, signals = 0, counters = 0;
  /// Required size of NCCL's team of load/store reach; 0: any.
  int64_t reach = 0;
  /// Multicast addresses are required.
  bool multimem = false;

  bool usesGin() const {
    return railBarriers || contexts || signals || counters;
  }
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CUDA_NCCLREQUIREMENTS_H
