//===- Sharing.cpp - Arguments of a launch that share memory --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Sharing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

using namespace commsir;

std::optional<std::pair<size_t, size_t>>
commsir::jit::findSharing(llvm::ArrayRef<GivenMemory> given) {
  auto begin = [&](size_t i) {
    return reinterpret_cast<uintptr_t>(given[i].data);
  };
  llvm::SmallVector<size_t, 8> order;
  for (size_t i : llvm::seq(given.size()))
    if (given[i].bytes)
      order.push_back(i);
  llvm::sort(order, [&](size_t a, size_t b) { return begin(a) < begin(b); });
  // Of all entries before, and of those that are written, what ends last.
  std::optional<size_t> last, lastWritten;
  auto reaches = [&](std::optional<size_t> before, size_t i) {
    return before && begin(i) - begin(*before) < given[*before].bytes;
  };
  auto note = [&](std::optional<size_t> &before, size_t i) {
    if (!before ||
        begin(i) + given[i].bytes > begin(*before) + given[*before].bytes)
      before = i;
  };
  for (size_t i : order) {
    if (given[i].written && reaches(last, i))
      return std::pair(*last, i);
    if (reaches(lastWritten, i))
      return std::pair(i, *lastWritten);
    note(last, i);
    if (given[i].written)
      note(lastWritten, i);
  }
  return std::nullopt;
}
