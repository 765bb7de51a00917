//===- Nccl.h - NCCL, loaded when it is needed ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_NCCL_H
#define COMMSIR_RUNTIME_CUDA_NCCL_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <nccl.h>

#include <string>

namespace commsir::cuda {

/// The NCCL functions that CommsIR calls, named as in NCCL without `nccl`. One
/// table per process; all fields are set.
struct Nccl {
#define COMMSIR_NCCL_FUNCTION(name) decltype(&::nccl##name) name = nullptr;
#include "runtime/cuda/NcclFunctions.inc"
#undef COMMSIR_NCCL_FUNCTION
  /// Ranks that share load/store reach, as returned by ncclTeamLsa. Mirrors the
  /// layout in nccl_device.h, which host code cannot include.
  struct Team {
    int ranks, rank, stride;
  };
  Team (*teamLsa)(ncclComm_t) = nullptr;
  /// ncclDevCommCreate and ncclDevCommDestroy. Their structs are opaque except
  /// for their size, unless the code is compiled for the same release. Null:
  /// not available.
  ncclResult_t (*devCommCreate)(ncclComm_t, const void *requirements,
                                void *made) = nullptr;
  ncclResult_t (*devCommDestroy)(ncclComm_t, const void *made) = nullptr;
  /// As returned by ncclGetVersion: 22809 is 2.28.9.
  int version = 0;
  /// Path of the loaded file.
  std::string path;

  /// Loads NCCL once: the file that COMMSIR_NCCL_LIBRARY names, else the one
  /// already loaded (torch's), else libnccl.so.2. The error lists what was
  /// tried and says that 2.28 or newer is required.
  static llvm::Expected<const Nccl *> get();

  /// Success, or an error "<what>: <NCCL's text> (<detail of the last error>)".
  llvm::Error check(ncclResult_t result, const llvm::Twine &what,
                    ncclComm_t comm = nullptr) const;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_NCCL_H
