//===- HostMemory.cpp - Limits the memory of a run ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/HostMemory.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>
#include <unistd.h>

uint64_t commsir::driver::memoryLimit() {
  uint64_t total =
      uint64_t(::sysconf(_SC_PHYS_PAGES)) * uint64_t(::sysconf(_SC_PAGESIZE));
  // Read as a stream: files of /sys have no size.
  auto limit = llvm::MemoryBuffer::getFileAsStream("/sys/fs/cgroup/memory.max");
  uint64_t container;
  if (limit && !(*limit)->getBuffer().trim().getAsInteger(10, container))
    total = std::min(total, container);
  return total / 4 * 3;
}

std::string commsir::driver::renderBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB",
                                          "TiB",   "PiB", "EiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit < 6; ++unit)
    value /= 1024;
  char text[40];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}
