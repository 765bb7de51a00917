//===- FakeMemory.cpp - Counts a thread's allocations ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Preloaded with FakeCudart.cpp: C++'s operator new for the whole process,
// which counts. The other forms of the library come here, but for aligned ones,
// and what is deleted goes to free.
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
