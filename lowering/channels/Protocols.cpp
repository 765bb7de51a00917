//===- Protocols.cpp - The protocols there are ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// CMake writes one line of Protocols.inc for each file of protocol/.
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::comms;

namespace mlir::comms {
#define COMMSIR_PROTOCOL(name) const Protocol &get##name##Protocol();
#include "lowering/channels/Protocols.inc"
#undef COMMSIR_PROTOCOL
} // namespace mlir::comms

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
