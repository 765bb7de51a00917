//===- RankArrays.cpp - A rank's arrays, one after the other --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RankArrays.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace commsir;
using namespace commsir::driver;

void RankArrays::add(size_t size) {
  offsets.push_back(bytes);
  sizes.push_back(size);
  bytes = llvm::alignTo(bytes + size, kArrayAlignment);
}

void RankArrays::add(const jit::ArgInfo &argument) {
  add(argument.kind == jit::ArgKind::Scalar ? 8 : argument.bytes());
}

std::vector<llvm::MutableArrayRef<char>> RankArrays::at(char *base) const {
  std::vector<llvm::MutableArrayRef<char>> arrays;
  for (auto [offset, size] : llvm::zip(offsets, sizes))
    arrays.push_back({base + offset, size});
  return arrays;
}
