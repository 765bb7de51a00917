//===- Collectives.cpp - The facts of each collective ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Collectives.h"

#include "dialect/Comms.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;

static constexpr CollectiveKind kinds[] = {
#define COMMSIR_COLLECTIVE(name, movement, direction, reduces, rowsVary)       \
  {#name, Movement::movement, Direction::direction, reduces, rowsVary},
#include "dialect/Collectives.def"
#undef COMMSIR_COLLECTIVE
};

llvm::ArrayRef<CollectiveKind> mlir::comms::getCollectiveKinds() {
  return kinds;
}

const CollectiveKind *mlir::comms::findCollectiveKind(llvm::StringRef name) {
  const auto *it = llvm::find_if(
      kinds, [&](const CollectiveKind &kind) { return kind.name == name; });
  return it == std::end(kinds) ? nullptr : it;
}

const CollectiveKind *mlir::comms::getCollectiveKind(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.consume_front("comms.") ? findCollectiveKind(name) : nullptr;
}

llvm::SmallVector<llvm::StringRef> mlir::comms::getReductionNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (unsigned kind = 0; kind <= getMaxEnumValForReductionKind(); ++kind)
    if (auto known = symbolizeReductionKind(kind))
      names.push_back(stringifyReductionKind(*known));
  return names;
}

llvm::StringRef mlir::comms::stringifyMovement(Movement movement) {
  static constexpr llvm::StringLiteral names[] = {"Same", "Cut", "Join",
                                                  "Exchange"};
  return names[static_cast<unsigned>(movement)];
}

llvm::StringRef mlir::comms::stringifyDirection(Direction direction) {
  static constexpr llvm::StringLiteral names[] = {"AllToAll", "RootToAll",
                                                  "AllToRoot", "OneToOne"};
  return names[static_cast<unsigned>(direction)];
}
