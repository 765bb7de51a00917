//===- FakeMemory.cpp - Counts a thread's allocations ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Preloaded with FakeCudart.cpp. Replaces C++'s operator new in the whole
// process by one that counts. The library's other forms call it, except for the
// aligned ones; operator delete calls free.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <new>

static thread_local unsigned long taken = 0;

void *operator new(size_t bytes) {
  ++taken;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}

/// Of the calling thread, so far.
extern "C" unsigned long fakeAllocations() { return taken; }
