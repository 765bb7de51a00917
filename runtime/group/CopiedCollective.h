//===- CopiedCollective.h - Collectives by copy engines ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather and all_to_all of GPUs without a kernel that moves data: each rank
// copies its input to symmetric memory, ranks meet, and each copies what it is
// to get from there. The GPU's processors stay free, and a size that was never
// seen needs no compilation.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_COPIEDCOLLECTIVE_H
#define COMMSIR_RUNTIME_GROUP_COPIEDCOLLECTIVE_H

#include "runtime/group/Shape.h"

namespace commsir::group {

/// Those of one group. For one thread at a time (Group.h).
class CopiedCollective {
public:
  explicit CopiedCollective(Group &group) : group(group) {}

  /// Whether it is a call that can be carried out so: an all_gather or
  /// all_to_all of all ranks, of whole arrays, whose way is not the caller's.
  static bool fits(const Shape &shape);
  /// Whether it is about as quick as by a kernel made for it (docs/Gpu.md).
  static bool isAsQuick(const Shape &shape, int64_t rank);
  /// Makes the symmetric memory that such a call needs. Collective where there
  /// is not enough of it; false: a stream is captured, and there is not.
  llvm::Expected<bool> reserve(const Shape &shape, bool isCapturing);

  /// What is put into the stream behind it runs once all ranks have come to it
  /// in theirs. `place`: 0 before peers' inputs are read, 1 after.
  using Meet = llvm::function_ref<llvm::Error(unsigned place)>;
  /// Puts the call into `stream`, after `reserve`.
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
