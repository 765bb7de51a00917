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

/// Zeroed pages, which take memory when they are first touched.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept { swap(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  /// Maps `bytes` bytes; 0: none. `what` names the memory in errors.
  static llvm::Expected<Mapping> create(size_t bytes, const char *what);

  char *data() const { return base; }
  size_t size() const { return bytes; }
  /// Requests large pages, for memory that will be touched entirely.
  void preferLargePages() const;
  /// Makes accesses to [offset, offset + count) fault. Both must be multiples
  /// of the page size. Returns false if the system has no more mappings.
  bool protect(size_t offset, size_t count) const;

private:
  void swap(Mapping &other) {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
  }
  char *base = nullptr;
  size_t bytes = 0;
};

/// Page size in bytes.
size_t getPageBytes();

/// Bytes of memory plus swap space of the machine; SIZE_MAX if the system does
/// not report them.
size_t getMachineBytes();

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_MEMORY_H
