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

/// The functions of NCCL that CommsIR calls, with NCCL's names less their
/// `nccl`. One table a process; all fields are set.
struct Nccl {
#define COMMSIR_NCCL_FUNCTION(name) decltype(&::nccl##name) name = nullptr;
#include "runtime/cuda/NcclFunctions.inc"
#undef COMMSIR_NCCL_FUNCTION
  /// Ranks that share load/store reach, as ncclTeamLsa gives them: its layout
  /// is that of nccl_device.h, which host code cannot include.
  struct Team {
    int ranks, rank, stride;
  };
  Team (*TeamLsa)(ncclComm_t) = nullptr;
  /// ncclDevCommCreate and ncclDevCommDestroy, over structures of which only
  /// code for the same release knows more than the size; null: there are none.
  ncclResult_t (*DevCommCreate)(ncclComm_t, const void *requirements,
                                void *made) = nullptr;
  ncclResult_t (*DevCommDestroy)(ncclComm_t, const void *made) = nullptr;
  /// As ncclGetVersion gives it: 22809 is 2.28.9.
  int version = 0;
  /// The file that was loaded.
  std::string path;

  /// Loads NCCL once: the file that COMMSIR_NCCL_LIBRARY names, else the one
  /// that this process has loaded already (torch's), else libnccl.so.2. The
  /// error says which were tried and that 2.28 or newer is needed.
  static llvm::Expected<const Nccl *> get();

  /// Success, or an error "<what>: <NCCL's text> (<detail of the last error>)".
  llvm::Error check(ncclResult_t result, const llvm::Twine &what,
                    ncclComm_t comm = nullptr) const;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_NCCL_H
