//===- TargetNumerics.cpp - The targets that calculate by themselves ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/TargetNumerics.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;

// CMake writes one line of TargetNumerics.inc for each file *Numerics.cpp of a
// target's folder.
namespace mlir::comms {
#define COMMSIR_TARGET_NUMERICS(name) const TargetNumerics &get##name();
#include "lowering/numerics/TargetNumerics.inc"
#undef COMMSIR_TARGET_NUMERICS
} // namespace mlir::comms

ArrayRef<const TargetNumerics *> mlir::comms::getTargetNumerics() {
#define COMMSIR_TARGET_NUMERICS(name) &get##name(),
  static const TargetNumerics *const all[] = {
#include "lowering/numerics/TargetNumerics.inc"
  };
#undef COMMSIR_TARGET_NUMERICS
  return all;
}

const TargetNumerics *mlir::comms::findTargetNumerics(StringRef chip) {
  auto all = getTargetNumerics();
  const auto *found = llvm::find_if(
      all, [&](const TargetNumerics *one) { return one->hasChip(chip); });
  return found == all.end() ? nullptr : *found;
}
