//===- Registry.cpp - The algorithms and protocols there are --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lists come from the file names in algorithm/ and protocol/: CMake writes
// one line for each file.
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::comms;

namespace mlir::comms {
#define COMMSIR_ALGORITHM(name) const Algorithm &get##name##Algorithm();
#include "lowering/collectives/Algorithms.inc"
#undef COMMSIR_ALGORITHM
#define COMMSIR_PROTOCOL(name) const Protocol &get##name##Protocol();
#include "lowering/channels/Protocols.inc"
#undef COMMSIR_PROTOCOL
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

llvm::ArrayRef<const Protocol *> mlir::comms::getProtocols() {
#define COMMSIR_PROTOCOL(name) &get##name##Protocol(),
  static const Protocol *const all[] = {
#include "lowering/channels/Protocols.inc"
  };
#undef COMMSIR_PROTOCOL
  return all;
}

const Protocol *mlir::comms::findProtocol(llvm::StringRef name) {
  auto all = getProtocols();
  const auto *it =
      llvm::find_if(all, [&](const Protocol *p) { return p->name == name; });
  return it == all.end() ? nullptr : *it;
}
