//===- Memory.cpp - Memory of all ranks, mapped lazily --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Memory.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

using namespace llvm;
using namespace commsir::cpu;

size_t commsir::cpu::getPageBytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t commsir::cpu::getMachineBytes() {
  struct sysinfo info;
  if (sysinfo(&info) != 0)
    return SIZE_MAX;
  return (static_cast<size_t>(info.totalram) + info.totalswap) * info.mem_unit;
}

Mapping::~Mapping() {
  if (base)
    munmap(base, bytes);
}

Expected<Mapping> Mapping::create(size_t bytes, const char *what) {
  Mapping mapping;
  if (bytes == 0)
    return std::move(mapping);
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return createStringError(
        inconvertibleErrorCode(),
        "cannot allocate %zu bytes for %s (%s): use fewer ranks or blocks, or "
        "smaller arrays",
        bytes, what, strerror(errno));
  mapping.base = static_cast<char *>(base);
  mapping.bytes = bytes;
  return std::move(mapping);
}

void Mapping::preferLargePages() const {
  if (base)
    madvise(base, bytes, MADV_HUGEPAGE);
}

bool Mapping::protect(size_t offset, size_t count) const {
  return mprotect(base + offset, count, PROT_NONE) == 0;
}
