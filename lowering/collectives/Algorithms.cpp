//===- Algorithms.cpp - The algorithms there are --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// CMake writes one line of Algorithms.inc for each file of algorithm/.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/Algorithm.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::comms;

namespace mlir::comms {
#define COMMSIR_ALGORITHM(name) const Algorithm &get##name##Algorithm();
#include "lowering/collectives/Algorithms.inc"
#undef COMMSIR_ALGORITHM
} // namespace mlir::comms

llvm::ArrayRef<const Algorithm *> mlir::comms::getAlgorithms() {
#define COMMSIR_ALGORITHM(name) &get##name##Algorithm(),
  static const Algorithm *const all[] = {
#include "lowering/collectives/Algorithms.inc"
  };
#undef COMMSIR_ALGORITHM
  return all;
}

const Algorithm *mlir::comms::findAlgorithm(llvm::StringRef name) {
  auto all = getAlgorithms();
  const auto *it =
      llvm::find_if(all, [&](const Algorithm *a) { return a->name == name; });
  return it == all.end() ? nullptr : *it;
}
