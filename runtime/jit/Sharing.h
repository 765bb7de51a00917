//===- Sharing.h - Arguments of a launch that share memory ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two arguments of a kernel are two arrays (docs/Spec.md). The checker and the
// optimizer rely on it, so callers are told before anything runs.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_SHARING_H
#define COMMSIR_RUNTIME_JIT_SHARING_H

#include "llvm/ADT/ArrayRef.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace commsir::jit {

/// Memory that a caller gives for an argument.
struct GivenMemory {
  const void *data = nullptr;
  size_t bytes = 0;
  /// As in ArgInfo.
  bool written = false;
};

/// Returns the numbers of two entries that share memory which the kernel writes
/// through one of them, the written one second; nullopt: there are none.
std::optional<std::pair<size_t, size_t>>
findSharing(llvm::ArrayRef<GivenMemory> given);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_SHARING_H
