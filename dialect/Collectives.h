//===- Collectives.h - What is known of a collective by its name -*- C++
//-*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COLLECTIVES_H
#define COMMSIR_DIALECT_COLLECTIVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;

namespace comms {

/// How the inputs of a rank relate to its outputs, N ranks taking part. The
/// whole array counts, and so do its rows.
enum class Movement {
  Same,     ///< R rows in, R rows out: one part.
  Cut,      ///< R rows in, one part a rank; R/N out, one part.
  Join,     ///< R rows in, one part; R*N out, the parts of all ranks.
  Exchange, ///< R rows in, R out: N parts leave and N parts come.
};

/// Whose inputs reach whose outputs.
enum class Direction { AllToAll, RootToAll, AllToRoot, OneToOne };

/// A row of dialect/Collectives.def.
struct CollectiveKind {
  /// Name of the op without its dialect: `all_reduce`.
  llvm::StringRef name;
  Movement movement;
  Direction direction;
  /// Combines what the ranks send, in rank order.
  bool reduces;
  /// Each pair of ranks exchanges a number of rows that is known at run time.
  bool rowsVary;

  /// The inputs, or the outputs, hold one part for each rank, not one part.
  bool cutsInput() const {
    return movement == Movement::Cut || movement == Movement::Exchange;
  }
  bool joinsOutput() const {
    return movement == Movement::Join || movement == Movement::Exchange;
  }
  bool hasRoot() const {
    return direction == Direction::RootToAll ||
           direction == Direction::AllToRoot;
  }
};

/// All rows.
llvm::ArrayRef<CollectiveKind> getCollectiveKinds();

/// The row of that name, or null.
const CollectiveKind *findCollectiveKind(llvm::StringRef name);

/// The row of `op`, or null when it is no collective.
const CollectiveKind *getCollectiveKind(Operation *op);

/// "Same", "AllToRoot": as Collectives.def spells them.
llvm::StringRef stringifyMovement(Movement movement);
llvm::StringRef stringifyDirection(Direction direction);

} // namespace comms
} // namespace mlir

#endif // COMMSIR_DIALECT_COLLECTIVES_H
