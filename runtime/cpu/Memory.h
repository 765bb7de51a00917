//===- Memory.h - Memory of all ranks, mapped lazily ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_MEMORY_H
#define COMMSIR_RUNTIME_CPU_MEMORY_H

#include "llvm/Support/Error.h"

#include <cstddef>
#include <utility>

namespace commsir::cpu {

/// Zeroed pages that take memory when they are touched.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept { swap(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  /// `what` names the memory in the error.
  static llvm::Expected<Mapping> create(size_t bytes, const char *what);

  char *data() const { return base; }
  size_t size() const { return bytes; }
  /// Asks for large pages: for memory that will be touched throughout.
  void preferLargePages() const;
  /// Makes [offset, offset + count) fault. Both are multiples of a page.
  /// Returns false when the system has no more mappings.
  bool protect(size_t offset, size_t count) const;

private:
  void swap(Mapping &other) {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
  }
  char *base = nullptr;
  size_t bytes = 0;
};

/// Bytes of a page of memory.
size_t getPageBytes();

/// Bytes of memory and swap space that the machine has.
size_t getMachineBytes();

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_MEMORY_H
