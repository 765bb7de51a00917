//===- Fiber.cpp - Stacks of blocks ---------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Fiber.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace commsir::cpu;

/// A process has 65,530 mappings by default and a guarded stack takes two:
/// beyond this number of slots stacks go without guard pages.
static constexpr size_t kGuardedSlots = 14000;

Expected<StackPool> StackPool::create(size_t slots, size_t stackBytes,
                                      size_t arenaBytes) {
  StackPool pool;
  size_t page = getPageBytes();
  pool.guard = slots <= kGuardedSlots ? page : 0;
  pool.stack = alignTo(stackBytes, page);
  pool.stride = pool.guard + pool.stack + alignTo(arenaBytes, page);
  size_t total = 0;
  if (__builtin_mul_overflow(slots, pool.stride, &total))
    return createStringError(
        "the blocks need more scratch memory than can be addressed: use fewer "
        "ranks or blocks");
  Expected<Mapping> mapping =
      Mapping::create(total, "stacks and scratch memory");
  if (!mapping)
    return mapping.takeError();
  pool.mapping = std::move(*mapping);
  for (size_t i = 0; pool.guard && i < slots; ++i)
    if (!pool.mapping.protect(i * pool.stride, pool.guard))
      break; // Other mappings have used the number up: the rest is unguarded.
  return std::move(pool);
}

std::vector<int64_t> StackPool::take(size_t first, size_t count) const {
  std::vector<int64_t> slots(count);
  for (size_t i = 0; i < count; ++i)
    slots[i] = static_cast<int64_t>(first + count - 1 - i);
  return slots;
}
