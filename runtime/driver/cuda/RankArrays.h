//===- RankArrays.h - A rank's arrays, one after the other ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKARRAYS_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKARRAYS_H

#include "runtime/jit/Compile.h"

namespace commsir::driver {

/// Alignment of arrays, on the GPU and on the host.
constexpr size_t kArrayAlignment = 256;

/// Layout, on the host, of a rank's arguments that are not hidden.
struct RankArrays {
  std::vector<size_t> offsets, sizes;
  /// Total size.
  size_t bytes = 0;

  void add(size_t size);
  /// Adds an argument. A scalar takes 8 bytes.
  void add(const jit::ArgInfo &argument);

  /// The arrays of the rank whose memory begins at `base`.
  std::vector<llvm::MutableArrayRef<char>> at(char *base) const;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKARRAYS_H
