//===- ThreadTargets.cpp - The targets of threads there are ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadTarget.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;

// CMake writes one line of ThreadTargets.inc for each file *Threads.cpp of a
// target's folder.
namespace mlir::comms::tiles {
#define COMMSIR_THREAD_TARGET(name) const ThreadTarget &get##name();
#include "lowering/tiles/ThreadTargets.inc"
#undef COMMSIR_THREAD_TARGET
} // namespace mlir::comms::tiles

ArrayRef<const tiles::ThreadTarget *> tiles::getThreadTargets() {
#define COMMSIR_THREAD_TARGET(name) &get##name(),
  static const ThreadTarget *const all[] = {
#include "lowering/tiles/ThreadTargets.inc"
  };
#undef COMMSIR_THREAD_TARGET
  return all;
}

const tiles::ThreadTarget *tiles::findThreadTarget(StringRef name) {
  auto all = getThreadTargets();
  const auto *found = llvm::find_if(
      all, [&](const ThreadTarget *one) { return one->name() == name; });
  return found == all.end() ? nullptr : *found;
}
