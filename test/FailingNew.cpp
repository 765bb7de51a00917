//===- FailingNew.cpp - An operator new that tests let fail ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/FailingNew.h"

#include <cstdlib>
#include <new>

using namespace commsir::test;

namespace commsir::test {
FailingNew failingNew;
thread_local Fails failsHere = Fails::ByDefault;
thread_local unsigned long takenHere = 0;
} // namespace commsir::test

static bool mayFailHere() {
  return failsHere == Fails::ByDefault ? failingNew.byDefault.load()
                                       : failsHere == Fails::Always;
}

static bool failsNow() {
  if (failingNew.left < 0 || !mayFailHere() || failingNew.left-- > 0)
    return false;
  failingNew.left = failingNew.once ? -1 : 0;
  return failingNew.hasFailed = true;
}

void *operator new(size_t bytes) {
  ++takenHere;
  void *memory = failsNow() ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
