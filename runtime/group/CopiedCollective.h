//===- CopiedCollective.h - Collectives by copy engines ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather and all_to_all on GPUs without a kernel that moves data. Each rank
// copies its input to symmetric memory; after a barrier each rank copies its
// output from there. The GPU's multiprocessors stay free, and a new size needs
// no compilation.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_COPIEDCOLLECTIVE_H
#define COMMSIR_RUNTIME_GROUP_COPIEDCOLLECTIVE_H

#include "runtime/group/Shape.h"

namespace commsir::group {

/// The copied collectives of one group. One thread at a time (Group.h).
class CopiedCollective {
public:
  explicit CopiedCollective(Group &group) : group(group) {}

  /// Whether the call can be carried out by copies: an all_gather or all_to_all
  /// of all ranks on whole arrays, without an algorithm chosen by the caller.
  static bool fits(const Shape &shape);
  /// Whether copies are about as fast as a kernel compiled for the call
  /// (docs/GpuReference.md).
  static bool isAsQuick(const Shape &shape, int64_t rank);
  /// Allocates the symmetric memory that such a call needs. Collective if there
  /// is too little. Returns false if a stream is captured and there is too
  /// little.
  llvm::Expected<bool> reserve(const Shape &shape, bool isCapturing);

  /// Inserts a barrier into the stream: later work runs once all ranks have
  /// reached it in their streams. `place` 0 precedes the reads of peers'
  /// inputs, 1 follows them.
  using Meet = llvm::function_ref<llvm::Error(unsigned place)>;
  /// Enqueues the call in `stream`. `reserve` must have succeeded.
  llvm::Error run(const Shape &shape, void *stream, Meet meet);

private:
  llvm::Error fetch(const Shape &shape, int64_t first, size_t bytes,
                    void *stream);

  Group &group;
  char *window = nullptr;
  size_t size = 0;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_COPIEDCOLLECTIVE_H
