//===- Examine.h - Inspects this machine's GPUs -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_EXAMINE_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_EXAMINE_H

#include "llvm/Support/JSON.h"

namespace commsir::driver {

/// Adds "cuda", "nccl" and "linker" to a report of commsir.doctor. A missing
/// component has a "problem" with the remedy. Opens no GPU.
void examineCuda(llvm::json::Object &report);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_EXAMINE_H
