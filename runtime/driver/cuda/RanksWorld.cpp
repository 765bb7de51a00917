//===- RanksWorld.cpp - Worlds whose ranks are processes ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RanksWorld.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace commsir;
using namespace commsir::driver;

RanksWorld::RanksWorld(const RankTask &task, const jit::CudaKernel &kernel)
    : task(task), numbers(kernel.args().size(), -1) {
  for (auto [i, argument] : llvm::enumerate(kernel.args()))
    if (!argument.hidden) {
      numbers[i] = int(places.offsets.size());
      places.add(argument);
    }
}

llvm::MutableArrayRef<char> RanksWorld::memory(unsigned arg, int64_t rank) {
  char *base = arraysOf(rank);
  if (numbers[arg] < 0 || !base)
    return {};
  return {base + places.offsets[numbers[arg]], places.sizes[numbers[arg]]};
}

void RanksWorld::setScalar(unsigned arg, int64_t rank,
                           llvm::ArrayRef<char> bytes) {
  llvm::MutableArrayRef<char> place = memory(arg, rank);
  if (!place.empty())
    std::memcpy(place.data(), bytes.data(),
                std::min(bytes.size(), place.size()));
}
